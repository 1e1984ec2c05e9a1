package identity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxName is the most bytes of a client's name that a proxy may say.
const MaxName = 256

// ProxyHeaderOptions say what else a proxy tells.
type ProxyHeaderOptions struct {
	// PlanHeader is the header with the client's plan, from the same proxies; "" reads
	// none.
	PlanHeader string
	// UnknownPlan is the plan of a client whose PlanHeader is missing, is not one
	// value, or is a plan that there is not. It is mandatory beside PlanHeader.
	UnknownPlan string
	// Plans says whether there is a plan of that name; nil takes every name.
	Plans func(name string) bool
	// Kind is what clients are, user; their identities begin with it. "" is
	// "proxy:" and the header's name.
	Kind string
}

// ProxyHeader tells clients apart by a header that an authenticating proxy sets. It
// is a Prover and a Named.
//
// What a client may forge: nothing, as long as each of the peers is a proxy that
// checks who it is asked by, and takes away or replaces that header and the plan's
// when a client sends them. From all other peers they count for nothing; whoever
// hands requests on takes them away ([ProxyHeader.From], [ProxyHeader.Names]), since
// what is behind us may believe them.
//
// Values are compared byte for byte, blanks around them aside. Lines that differ,
// an empty one included, prove nothing: one of them may be the client's own.
type ProxyHeader struct {
	name, plan string // canonical; plan may be empty
	unknown    string
	plans      func(string) bool
	from       peers
	kind       string
	prefix     string
	secret     *Secret
}

// NewProxyHeader is a source by the header's value from those peers, at least one.
// A peer on a Unix socket is always one of them, as with Address.
func NewProxyHeader(name string, from []netip.Prefix, secret *Secret, o ProxyHeaderOptions) (*ProxyHeader, error) {
	plain, err := NewHeader(name, secret)
	if err != nil {
		return nil, err
	}
	h := &ProxyHeader{name: plain.name, unknown: o.UnknownPlan, plans: o.Plans, kind: o.Kind, secret: secret}
	if h.from, err = newPeers(from); err != nil {
		return nil, err
	}
	switch {
	case len(from) == 0:
		return nil, errors.New("nobody's word is taken for the header: name the addresses of the proxies that set it")
	case (o.PlanHeader == "") != (o.UnknownPlan == ""):
		return nil, errors.New("the header with the plan and the plan of those who have none there go together: give both or neither")
	case o.Kind == "":
		h.prefix = "proxy:" + strings.ToLower(h.name) + ":"
	case o.Kind == "user":
		h.prefix = "user:"
	default:
		return nil, fmt.Errorf("%q is not a kind of client that a proxy names: user, or nothing", o.Kind)
	}
	if o.PlanHeader != "" {
		if h.plan, err = headerName(o.PlanHeader); err != nil {
			return nil, err
		}
		if h.plan == h.name {
			return nil, fmt.Errorf("the header %s cannot be the client's name and plan at once: let the proxy set two", h.name)
		}
	}
	return h, nil
}

// From says whether a peer's word is taken.
func (h *ProxyHeader) From(peer netip.Addr) bool {
	return !peer.IsValid() || h.from.contain(plain(peer))
}

// Names are the canonical names of the headers that are read.
func (h *ProxyHeader) Names() []string {
	if h.plan == "" {
		return []string{h.name}
	}
	return []string{h.name, h.plan}
}

// Identity is the kind of client and the hash of the value.
func (h *ProxyHeader) Identity(r *Request) (string, bool) {
	who, shown, err := h.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

// Stage is Look: the proxy has verified it.
func (h *ProxyHeader) Stage(*Request) Stage { return Look }

// Prove is the client that the proxy names.
func (h *ProxyHeader) Prove(_ context.Context, r *Request) (Who, bool, error) {
	if !h.From(r.Peer) {
		return Who{}, false, nil
	}
	name, one := single(r.Header[h.name])
	switch {
	case !one || name != "" && !isName(name):
		return Who{}, false, ErrUnproved
	case name == "":
		return Who{}, false, nil
	}
	who := h.who(name)
	if h.plan != "" {
		who.Plan, one = single(r.Header[h.plan])
		if !one || who.Plan == "" || h.plans != nil && !h.plans(who.Plan) {
			who.Plan = h.unknown
		}
	}
	return who, true, nil
}

// For is the client of that name. Its plan is in the proxy's header alone.
func (h *ProxyHeader) For(name string) (Who, error) {
	if name = strings.Trim(name, " \t"); !isName(name) {
		return Who{}, fmt.Errorf("a client's name is a text of 1 to %d bytes, as the header %s has it", MaxName, h.name)
	}
	return h.who(name), nil
}

func (h *ProxyHeader) who(name string) Who {
	who := Who{ID: h.secret.identity(h.prefix, name)}
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		name = strconv.Quote(name) // operators read it
	}
	if h.kind == "" {
		who.Name = "header:" + h.name + "=" + name
	} else {
		who.Name = h.prefix + name
	}
	return who
}

// single is the value of lines that are all the same, "" where there is none.
func single(lines []string) (value string, one bool) {
	for i, line := range lines {
		if line = strings.Trim(line, " \t"); i > 0 && line != value {
			return "", false
		}
		value = line
	}
	return value, true
}

func isName(name string) bool {
	return name != "" && len(name) <= MaxName && utf8.ValidString(name)
}

// TellsPlans says whether plans come with requests.
func (h *ProxyHeader) TellsPlans() bool { return h.plan != "" }

func (h *ProxyHeader) String() string {
	if h.kind != "" {
		return h.kind
	}
	texts := make([]string, len(h.from))
	for i, p := range h.from {
		texts[i] = p.String()
	}
	return "{header: " + h.name + ", from: [" + strings.Join(texts, ", ") + "]}"
}
