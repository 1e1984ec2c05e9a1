package probe

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"time"
)

// The document of WriteJSON.
type (
	jsonReport struct {
		URL      string      `json:"url"`
		As       []string    `json:"as,omitempty"` // the identities, without what is secret
		Began    time.Time   `json:"began"`
		Seconds  float64     `json:"seconds"`
		Requests int         `json:"requests"`
		Most     jsonBudget  `json:"budget"`
		Ended    string      `json:"ended,omitempty"`
		Limited  bool        `json:"limited"`
		Limit    string      `json:"limit,omitempty"`
		Units    *Estimate   `json:"units,omitempty"`
		Window   *Estimate   `json:"window_seconds,omitempty"`
		Burst    *Estimate   `json:"burst,omitempty"`
		Which    []jsonWhich `json:"algorithms,omitempty"`
		Evidence []string    `json:"evidence"`
		Checks   []jsonCheck `json:"checks"`
		Failed   bool        `json:"failed"`
	}
	jsonBudget struct {
		Requests int     `json:"requests"`
		Seconds  float64 `json:"seconds"`
	}
	jsonWhich struct {
		Algorithm string  `json:"algorithm"`
		Certainty float64 `json:"certainty"`
	}
	jsonCheck struct {
		Name    string   `json:"name"`
		Asks    string   `json:"asks"`
		Verdict Verdict  `json:"verdict"`
		Seen    string   `json:"seen"`
		Details []string `json:"details,omitempty"`
		Why     string   `json:"why,omitempty"`
		Todo    string   `json:"todo,omitempty"`
	}
)

// WriteJSON writes the report as JSON, for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	f := r.Finding
	out := jsonReport{
		URL: r.Target.shown(), As: r.Target.as(), Began: r.Began, Seconds: r.Took.Seconds(), Requests: r.Requests, Most: jsonBudget{r.Budget.Requests, r.Budget.Time.Seconds()}, Ended: r.Ended,
		Limited: f.Limited, Evidence: append([]string{}, f.Evidence...), Checks: []jsonCheck{}, Failed: r.Failed(),
	}
	if f.Limited {
		out.Limit, out.Units, out.Window = f.Limit.String(), &f.Units, &f.Window
		if f.Limit.Algorithm.Bucket() {
			out.Burst = &f.Burst
		}
		for _, c := range f.Algorithms {
			out.Which = append(out.Which, jsonWhich{c.Algorithm.String(), c.Certainty})
		}
	}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, jsonCheck(c))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// MarshalJSON writes an estimate in small letters.
func (e Estimate) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]float64{"value": e.Value, "low": e.Low, "high": e.High})
}

// The document of WriteJUnit, as build servers read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes the checks as test cases: what is bad has failed, what could
// not be found out was skipped.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "comporta probe " + r.Target.shown(), Tests: len(r.Checks), Time: strconv.FormatFloat(r.Took.Seconds(), 'f', 3, 64)}
	for _, c := range r.Checks {
		one := junitCase{Class: "comporta.probe", Name: c.Name + ": " + c.Asks, Out: c.Seen}
		switch c.Verdict {
		case Bad:
			suite.Failures++
			one.Failure = &junitFailure{c.Seen, c.Todo}
		case Unknown:
			suite.Skipped++
			one.Skipped = &junitSkipped{c.Seen}
		}
		suite.Cases = append(suite.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
