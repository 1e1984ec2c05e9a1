package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/explain"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/policy"
)

// A Client is one client under all limits that can count it by itself.
type Client struct {
	// Who is what it was asked for by, Identity how it is stored.
	Who      string    `json:"who"`
	Identity string    `json:"identity"`
	At       time.Time `json:"at"`
	Limits   []Limit   `json:"limits"`
}

// A Limit is how a client stands under one limit, exactly. Times are in seconds.
type Limit struct {
	Name string `json:"name"`
	// Numbers are the limit as it holds for this client, From whose they are: the
	// limit's own, a plan's, an override's.
	Numbers   string `json:"numbers"`
	From      string `json:"from"`
	Algorithm string `json:"algorithm"`
	// Enforced says whether it refuses anything to this client.
	Enforced  bool `json:"enforced"`
	Unlimited bool `json:"unlimited"`
	// Full is what a full budget holds, Used what is taken of it, Remaining what is
	// left; all 0 where it is unlimited.
	Full      int64 `json:"full"`
	Used      int64 `json:"used"`
	Remaining int64 `json:"remaining"`
	// Passes says whether a request of one unit would be allowed now; Blocked that it
	// would not for what the client did before.
	Passes  bool `json:"passes"`
	Blocked bool `json:"blocked"`
	// MoreAfter is when one more unit remains, FullAfter when all do, RetryAfter when
	// a request of one unit passes: null for never.
	MoreAfter  float64  `json:"more_after"`
	FullAfter  float64  `json:"full_after"`
	RetryAfter *float64 `json:"retry_after"`
}

// show looks at one client. It spends nothing.
func show(c *call) (any, error) {
	engine, who, err := c.who(c.PathValue("who"), c.URL.Query().Get("plan"))
	if err != nil {
		return nil, err
	}
	v := new(policy.Verdict)
	if err := engine.LookAt(c.Context(), who, v); err != nil {
		return nil, refused(err)
	}
	client := Client{c.PathValue("who"), who.Who.ID, v.Now.Time().UTC(), []Limit{}}
	for i := range v.Applied {
		client.Limits = append(client.Limits, limitOf(&v.Applied[i]))
	}
	return client, nil
}

func limitOf(a *policy.Applied) Limit {
	l, d := a.Rule.Limit(), &a.Decision
	told := Limit{
		Name: a.Limit.Name, Numbers: l.String(), From: a.From, Algorithm: l.Algorithm.String(),
		Enforced: !a.Lenient, Unlimited: l.Unlimited, Passes: d.Allowed, Blocked: a.Blocked, RetryAfter: explain.Seconds(d.RetryAfter),
	}
	if !l.Unlimited {
		told.Full, told.Remaining = a.Rule.Full(), d.Remaining
		told.Used = told.Full - told.Remaining
		told.MoreAfter, told.FullAfter = d.ResetAfter.Seconds(), d.FullAfter.Seconds()
	}
	return told
}

// A Top is a ranking of clients over the last minutes.
type Top struct {
	// By is use or denied; Limit is the limit, "" for all of them together; Unit what
	// is counted: units or requests.
	By    string    `json:"by"`
	Limit string    `json:"limit"`
	Unit  string    `json:"unit"`
	Since time.Time `json:"since"`
	// Seen is the count of all clients; over all limits a request counts for each
	// client that it shows. Missed requests were not counted: under load
	// the counts are of a sample.
	Seen    int64   `json:"seen"`
	Missed  int64   `json:"missed"`
	Clients []Count `json:"clients"`
}

// A Count is a client's: at least and at most so much.
type Count struct {
	Who      string `json:"who"`
	Identity string `json:"identity"`
	AtLeast  int64  `json:"at_least"`
	AtMost   int64  `json:"at_most"`
}

// top ranks clients.
func top(c *call) (any, error) {
	t := Top{By: cmp.Or(c.URL.Query().Get("by"), "use"), Limit: c.URL.Query().Get("limit"), Unit: "requests", Clients: []Count{}}
	by := telemetry.ByUse
	switch t.By {
	case "use":
		if t.Limit != "" {
			t.Unit = "units"
		}
	case "denied":
		by = telemetry.ByDenied
	default:
		return nil, &failure{http.StatusBadRequest, "by is use or denied."}
	}
	ranking, ok := c.o.Telemetry.Top(by, t.Limit, comporta.InstantOf(now()))
	if !ok {
		return nil, unprocessable(fmt.Sprintf("%q is no limit of the policy, or one per everyone: it ranks nobody.", t.Limit))
	}
	t.Since, t.Seen, t.Missed = ranking.Since.Time().UTC(), ranking.Seen, ranking.Missed
	for _, e := range ranking.Entries {
		t.Clients = append(t.Clients, Count{e.Name, e.Identity, e.AtLeast, e.AtMost})
	}
	return t, nil
}
