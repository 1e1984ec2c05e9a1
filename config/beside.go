package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckFiles reads the files beside the policy that say who is asking, those of
// API keys and of the keys of tokens, as a gateway does when it starts. All that
// is wrong with them comes at once, as Problems. What is allowed and probably not
// meant is added to Warnings, and so is a file that is not there: the gateway will
// not start without it, and it may be made on another machine. It asks no URL. No
// problem repeats a key.
func (c *Config) CheckFiles(ctx context.Context) error {
	var all Problems
	for _, f := range c.besides() {
		_, err := os.Stat(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p := f.at.problem(fmt.Sprintf("%s does not exist: the gateway will not start without it", f.name), f.hint)
			p.Code = "W-FILE-MISSING"
			c.Warnings = append(c.Warnings, p)
			continue
		case err == nil:
			err = f.check(ctx)
		}
		var problems Problems
		switch {
		case errors.As(err, &problems):
			all = append(all, problems...)
		case err != nil:
			all = append(all, f.at.problem(err.Error(), f.hint))
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// A besideFile is one that is named by a word of the policy.
type besideFile struct {
	name  string
	at    place
	hint  string
	check func(context.Context) error
}

func (c *Config) besides() (out []besideFile) {
	if k := c.Keyring; k != nil && k.File != "" {
		out = append(out, besideFile{k.File, c.said.keysAt, "list the keys in it, each as - {id: acme, key: …}", func(context.Context) error {
			_, warnings, err := c.ReadKeys()
			c.Warnings = append(c.Warnings, warnings...)
			return err
		}})
	} else if k != nil && k.TokenFile != "" {
		out = append(out, besideFile{k.TokenFile, c.said.keysAt, "write the token into it, on one line", func(context.Context) error {
			_, err := k.Token()
			return err
		}})
	}
	if c.UserFile != "" {
		out = append(out, besideFile{c.UserFile, c.said.userAt, "get it from the issuer, who publishes it as a JSON Web Key Set", c.User.Load})
	}
	return out
}
