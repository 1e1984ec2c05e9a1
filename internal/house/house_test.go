// Package house holds the plan of the house: who may import whom, who may ask
// the time, how long a file may be.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/comporta/comporta"

// A room may import the listed rooms of lower floors and the listed guests (by
// prefix), and of the standard library what it likes. Widening a line is a
// decision with a reason, not a way to mend a build.
type room struct {
	name   string
	floor  int
	rooms  []string // without the module's path; "." is the root
	guests []string
}

var rooms = []room{
	{name: ".", floor: 0},
	{name: "identity", floor: 0, guests: []string{"golang.org/x/text"}},
	{name: "memstore", floor: 1, rooms: []string{"."}},
	{name: "storetest", floor: 1, rooms: []string{"."}, guests: []string{"pgregory.net/rapid"}},
	{name: "redisstore", floor: 1, rooms: []string{"."}},
	{name: "internal/manners", floor: 1},
	{name: "client", floor: 2, rooms: []string{".", "internal/manners"}, guests: []string{"github.com/dunglas/httpsfv"}},
	{name: "client/grpcclient", floor: 3, rooms: []string{".", "client"}, guests: []string{"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"}},
	{name: "redisstore/rueidis", floor: 2, rooms: []string{"redisstore"}, guests: []string{"github.com/redis/rueidis"}},
	{name: "redisstore/goredis", floor: 2, rooms: []string{"redisstore"}, guests: []string{"github.com/redis/go-redis/v9"}},
	{name: "identity/jwt", floor: 2, rooms: []string{"identity"}, guests: []string{"github.com/golang-jwt/jwt/v5", "github.com/MicahParks/jwkset"}},
	{name: "internal/keysource", floor: 2, rooms: []string{"identity", "redisstore"}},
	{name: "policy", floor: 3, rooms: []string{".", "identity"}, guests: []string{"github.com/gaissmai/bart"}},
	{name: "config", floor: 4, rooms: []string{".", "client", "identity", "identity/jwt", "policy", "redisstore"}, guests: []string{"github.com/goccy/go-yaml"}},
	{name: "httplimit", floor: 4, rooms: []string{".", "identity", "policy"}},
	{name: "internal/telemetry", floor: 4, rooms: []string{".", "identity", "policy"}, guests: []string{"github.com/prometheus/client_golang"}},
	{name: "internal/sim", floor: 4, rooms: []string{".", "internal/manners"}},
	{name: "internal/probe", floor: 4, rooms: []string{".", "client"}},
	{name: "internal/explain", floor: 4, rooms: []string{".", "identity", "policy"}},
	{name: "internal/doctor", floor: 4, rooms: []string{".", "redisstore"}},
	{name: "internal/gateway", floor: 5, rooms: []string{".", "identity", "policy", "config", "httplimit", "internal/telemetry"}, guests: []string{"github.com/pires/go-proxyproto"}},
	{name: "internal/egress", floor: 5, rooms: []string{".", "client", "policy", "config"}, guests: []string{"github.com/prometheus/client_golang"}},
	{name: "internal/publish", floor: 5, rooms: []string{".", "identity", "policy"}, guests: []string{"github.com/yuin/goldmark"}},
	{name: "internal/admin", floor: 5, rooms: []string{".", "identity", "policy", "config", "internal/explain", "internal/telemetry"}},
	{name: "cmd/comporta", floor: 6, rooms: []string{".", "client", "identity", "memstore", "redisstore", "redisstore/rueidis", "policy", "config", "internal/admin", "internal/doctor", "internal/egress", "internal/explain", "internal/gateway", "internal/keysource", "internal/probe", "internal/publish", "internal/sim", "internal/telemetry"}, guests: []string{"github.com/alecthomas/kong", "github.com/fsnotify/fsnotify", "golang.org/x/term"}},
	{name: "internal/redistest", floor: 0},
	{name: "internal/nodetest", floor: 0},
	{name: "internal/gatewaytest", floor: 0},
	{name: "internal/chaos", floor: 7, rooms: []string{".", "redisstore", "redisstore/rueidis", "internal/redistest"}, guests: []string{"github.com/Shopify/toxiproxy/v2", "github.com/rs/zerolog"}},
	{name: "internal/siege", floor: 7, rooms: []string{"internal/redistest"}},
	{name: "internal/callers", floor: 7, rooms: []string{".", "client", "client/grpcclient", "httplimit", "memstore", "policy", "config", "identity", "internal/gateway"}, guests: []string{"github.com/hashicorp/go-retryablehttp", "google.golang.org/grpc"}},
	{name: "internal/house", floor: 0},
}

// Tests may also import these.
// httpsfv is the oracle for header fields: a reader of RFC 9651 that we did not write.
var testGuests = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/dunglas/httpsfv"}

// clocks are the files that may ask the time.
var clocks = []string{
	"wait.go", // until a deadline
	"client/clock.go",
	"client/grpcclient/clock.go",
	"internal/probe/clock.go",
	"identity/clock.go",
	"memstore/clock.go",
	"redisstore/clock.go",
	"config/clock.go", // of the day on which overrides end
	"identity/jwt/clock.go",
	"policy/clock.go",
	"internal/admin/clock.go",
	"internal/doctor/clock.go",
	"internal/gateway/clock.go",
}

const longest = 500

func TestDoorsOpenDownward(t *testing.T) {
	for _, r := range rooms {
		for _, name := range r.rooms {
			if i := slices.IndexFunc(rooms, func(o room) bool { return o.name == name }); i < 0 || rooms[i].floor >= r.floor {
				t.Errorf("the plan itself: %s may not import %s, which is not on a lower floor", r.name, name)
			}
		}
	}
	walk(t, func(path string, file *ast.File, _ *token.FileSet) {
		dir := filepath.ToSlash(filepath.Dir(path))
		i := slices.IndexFunc(rooms, func(r room) bool { return r.name == dir })
		if i < 0 {
			t.Errorf("%s: the room %s is not in the plan", path, dir)
			return
		}
		test := strings.HasSuffix(path, "_test.go")
		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if !rooms[i].mayImport(name, test) {
				t.Errorf("%s may not import %s", path, name)
			}
		}
	})
}

func (r *room) mayImport(name string, test bool) bool {
	if rest, ours := strings.CutPrefix(name, module); ours {
		rest = strings.TrimPrefix(rest, "/")
		if rest == "" {
			rest = "."
		}
		return slices.Contains(r.rooms, rest) || test && r.mayTestWith(rest)
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	allowed := r.guests
	if test {
		allowed = append(slices.Clone(allowed), testGuests...)
	}
	return slices.ContainsFunc(allowed, func(g string) bool { return name == g || strings.HasPrefix(name, g+"/") })
}

// Whoever uses one client of Redis must not build the other.
func TestAdaptersStandAlone(t *testing.T) {
	for mine, other := range map[string]string{"rueidis": "github.com/redis/go-redis", "goredis": "github.com/redis/rueidis"} {
		deps, err := exec.Command("go", "list", "-deps", module+"/redisstore/"+mine).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(deps), other) {
			t.Errorf("redisstore/%s brings %s", mine, other)
		}
	}
}

// mayTestWith says which of our rooms tests may import beside the room's own: it
// needs a store, or a server and a client to have one.
func (r *room) mayTestWith(name string) bool {
	switch name {
	case r.name, "storetest", "internal/redistest", "internal/nodetest", "internal/gatewaytest":
		return true
	case "memstore":
		return r.floor != 1
	case "redisstore/rueidis":
		return r.name == "redisstore" || r.name == "internal/keysource"
	}
	return false
}

func TestNoHiddenBeginnings(t *testing.T) {
	walk(t, func(path string, file *ast.File, fset *token.FileSet) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init: say it where it is used", fset.Position(f.Pos()))
			}
		}
	})
}

func TestOnlyClocksAskTheTime(t *testing.T) {
	walk(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || slices.Contains(clocks, filepath.ToSlash(path)) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				t.Errorf("%s asks the time: take an instant or a clock instead", fset.Position(n.Pos()))
			}
			return true
		})
	})
}

func TestFilesAreReadInOneSitting(t *testing.T) {
	walk(t, func(path string, file *ast.File, fset *token.FileSet) {
		lines := fset.File(file.Pos()).LineCount()
		if lines <= longest {
			return
		}
		for _, c := range file.Comments {
			if strings.Contains(c.Text(), "Long because ") {
				return
			}
		}
		t.Errorf("%s has %d lines: split it, or say in it that it is «Long because …»", path, lines)
	})
}

// walk parses every Go file of the main module.
func walk(t *testing.T, visit func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir // a module of its own
			}
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(rel, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
