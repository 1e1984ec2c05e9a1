package admin

import (
	"strings"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// A Reset makes a client new under some limits, or under all that can count it by
// itself where none is named.
type Reset struct {
	Who    string   `json:"who"`
	Limits []string `json:"limits,omitempty"`
	Why    string   `json:"why"`
}

// reset makes a client new.
func reset(c *call) (any, error) {
	var said Reset
	if err := c.read(&said); err != nil {
		return nil, err
	}
	if err := checkWhy(said.Why); err != nil {
		return nil, err
	}
	engine, who, err := c.who(said.Who, "")
	if err != nil {
		return nil, err
	}
	err = refused(engine.Reset(c.Context(), who, said.Limits...))
	limits := strings.Join(said.Limits, ", ")
	if limits == "" {
		limits = "all"
	}
	c.audit.record(c, "reset", said.Why, err, "who", said.Who, "limits", limits)
	if err != nil {
		return nil, err
	}
	return struct {
		Who    string   `json:"who"`
		Limits []string `json:"limits"`
	}{said.Who, append([]string{}, said.Limits...)}, nil
}

// A Grant gives a client back units that it used.
type Grant struct {
	Who   string `json:"who"`
	Limit string `json:"limit"`
	Units int64  `json:"units"`
	// Plan is needed where the client's plan comes with its credential, and it was
	// not seen lately.
	Plan string `json:"plan,omitempty"`
	Why  string `json:"why"`
}

// A Granted is how the client stands then.
type Granted struct {
	Who       string `json:"who"`
	Limit     string `json:"limit"`
	Full      int64  `json:"full"`
	Remaining int64  `json:"remaining"`
	// FullAfter is when all units remain, in seconds.
	FullAfter float64 `json:"full_after"`
}

// grant gives units back.
func grant(c *call) (any, error) {
	var said Grant
	if err := c.read(&said); err != nil {
		return nil, err
	}
	if err := checkWhy(said.Why); err != nil {
		return nil, err
	}
	engine, who, err := c.who(said.Who, said.Plan)
	if err != nil {
		return nil, err
	}
	var d comporta.Decision
	if d, err = engine.Grant(c.Context(), who, said.Limit, said.Units); err != nil {
		err = refused(err)
	}
	c.audit.record(c, "grant", said.Why, err, "who", said.Who, "limit", said.Limit, "units", said.Units)
	if err != nil {
		return nil, err
	}
	return Granted{said.Who, said.Limit, d.Limit, d.Remaining, d.FullAfter.Seconds()}, nil
}

// An Override is a client's own numbers.
type Override struct {
	// ID names one of run time; those of the policy file have its Line instead.
	ID   string `json:"id,omitempty"`
	Line int    `json:"line,omitempty"`
	Who  string `json:"who"`
	// Limits are the numbers by the limits' names.
	Limits map[string]string `json:"limits"`
	// Through is the last day on which it holds; "" has no end.
	Through string `json:"through,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// By is who added it.
	By string `json:"by,omitempty"`
	// Problem is why it is not in force; "" where it is.
	Problem string `json:"problem,omitempty"`
	// YAML is the item to commit into the policy file's overrides.
	YAML string `json:"yaml,omitempty"`
}

// Overrides are all that there are.
type Overrides struct {
	Policy  []Override `json:"policy"`
	RunTime []Override `json:"run_time"`
}

func listOverrides(c *call) (any, error) {
	all := Overrides{Policy: []Override{}, RunTime: c.book.list()}
	_, engine := c.o.InForce()
	for _, o := range engine.Policy().Overrides {
		told := Override{Line: o.Line, Who: whose(o), Limits: make(map[string]string), Reason: o.Reason}
		for name, l := range o.Limits {
			told.Limits[name] = l.String()
		}
		if !o.Until.IsZero() {
			told.Through = lastDay(o)
		}
		all.Policy = append(all.Policy, told)
	}
	return all, nil
}

// lastDay is the day whose end an override ends with.
func lastDay(o *policy.Override) string { return o.Until.Add(-1).Format("2006-01-02") }

// A Wanted override begins at once.
type Wanted struct {
	Who     string            `json:"who"`
	Limits  map[string]string `json:"limits"`
	Through string            `json:"through,omitempty"`
	Why     string            `json:"why"`
}

func addOverride(c *call) (any, error) {
	var said Wanted
	if err := c.read(&said); err != nil {
		return nil, err
	}
	if err := checkWhy(said.Why); err != nil {
		return nil, err
	}
	added, err := c.book.add(said, c.by)
	what := []any{"who", said.Who, "limits", inOneLine(said.Limits), "through", said.Through}
	if err == nil {
		what = append(what, "id", added.ID)
	}
	c.audit.record(c, "override", said.Why, err, what...)
	if err != nil {
		return nil, err
	}
	return added, nil
}

func endOverride(c *call) (any, error) {
	why := c.URL.Query().Get("why")
	if err := checkWhy(why); err != nil {
		return nil, err
	}
	ended, err := c.book.end(c.PathValue("id"))
	what := []any{"id", ended.ID, "who", ended.Who}
	c.audit.record(c, "override end", why, err, what...)
	if err != nil {
		return nil, err
	}
	return ended, nil
}
