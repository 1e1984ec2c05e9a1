package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/internal/explain"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// explainCmd tells what a policy does with one request, every budget being full.
type explainCmd struct {
	Config  string   `short:"c" required:"" placeholder:"FILE" help:"The policy file."`
	Request string   `required:"" placeholder:"REQUEST" help:"A request line, like 'GET /search', or a file with a whole HTTP request."`
	Header  []string `sep:"none" placeholder:"LINE" help:"A header line more, like 'X-API-Key: k'; may be given again."`
	From    string   `placeholder:"ADDRESS" help:"Who connects (default: 192.0.2.1, nobody's)."`
	JSON    bool     `name:"json" help:"Print it as JSON."`
}

// Run prints the explanation. It reads the policy and the files that it names,
// asks nobody, and spends nothing.
func (c *explainCmd) Run(ctx context.Context, std *streams) error {
	cfg, err := load(c.Config, std)
	if err != nil {
		return err
	}
	engine, err := c.engine(ctx, cfg, std)
	if err != nil {
		return err
	}
	r, err := explain.ReadRequest(engine, c.Request, explain.Options{Headers: c.Header, From: c.From})
	if err != nil {
		return err
	}
	x, err := explain.Explain(ctx, engine, r)
	if err != nil {
		return err
	}
	if !c.JSON {
		return x.WriteText(std.Out)
	}
	out := json.NewEncoder(std.Out)
	out.SetIndent("", "  ")
	return out.Encode(x)
}

// engine is that of the policy over a store in which nothing is counted yet.
func (c *explainCmd) engine(ctx context.Context, cfg *config.Config, std *streams) (*policy.Engine, error) {
	if _, err := os.Stat(cfg.SecretFile); errors.Is(err, fs.ErrNotExist) {
		cfg.SecretFile = "" // who only looks makes no file
	}
	if err := cfg.LoadSecret(); err != nil {
		return nil, err
	}
	if marks := cfg.Policy.Marks; marks != nil {
		marks.Key = make([]byte, identity.MinSecret) // nothing is signed here
	}
	switch k := cfg.Keyring; {
	case k == nil:
	case k.File == "":
		fmt.Fprintln(std.Err, "comporta: API keys are looked up elsewhere, which is not asked here: none is known")
	default:
		keys, _, err := cfg.ReadKeys()
		if err != nil {
			return nil, err
		}
		cfg.APIKey.Use(keys)
	}
	switch {
	case cfg.User == nil:
	case cfg.UserFile == "":
		fmt.Fprintln(std.Err, "comporta: the keys of tokens come from a URL, which is not asked here: no token proves anything")
	default:
		if err := cfg.User.Load(ctx); err != nil {
			return nil, err
		}
	}
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		return nil, err
	}
	return policy.NewEngine(cfg.Policy, store, policy.Options{Local: store})
}
