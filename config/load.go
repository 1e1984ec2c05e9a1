package config

import (
	"errors"
	"io"
	"os"
)

// maxFile bounds a policy file: far more than anybody writes by hand.
const maxFile = 1 << 20

// Load reads a policy file. What is wrong with it comes as Problems, all of them
// at once. It opens no other file and listens nowhere.
func Load(file string) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// Parse is Load of a file's text; name stands for it in problems.
func Parse(name string, data []byte) (*Config, error) { return nil, errors.New("not yet") }

// QuickOptions are a policy of one limit in a few words, as flags give them.
type QuickOptions struct {
	// Upstream is the API's URL: http://127.0.0.1:9000.
	Upstream string
	// Limit is a limit's text: 100/min burst 20. Algorithm is its algorithm's name; "" is token_bucket.
	Limit, Algorithm string
	// Per is address (also when empty), everyone, header:NAME or path:WILDCARD.
	Per string
}

// Quick is a config without a file: the same checks, and problems that name the flag.
func Quick(q QuickOptions) (*Config, error) { return nil, errors.New("not yet") }

// LoadSecret reads the secret file, or makes it once; in memory only when there is none.
func (c *Config) LoadSecret() error { return nil }

// Schema is the JSON Schema (2020-12) of the file.
func Schema() []byte { return nil }

// WriteText writes the policy as understood, defaults included, for people.
func (c *Config) WriteText(w io.Writer) error { return nil }

// WriteJSON writes the policy as understood, defaults included, for machines.
func (c *Config) WriteJSON(w io.Writer) error { return nil }
