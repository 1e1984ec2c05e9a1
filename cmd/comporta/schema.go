package main

import "github.com/comporta/comporta/config"

// schemaCmd prints the JSON Schema of policy files, for editors and for CI.
type schemaCmd struct {
	Egress bool `help:"That of egress files instead."`
}

// Run prints it.
func (c *schemaCmd) Run(std *streams) error {
	if c.Egress {
		_, err := std.Out.Write(config.EgressSchema())
		return err
	}
	_, err := std.Out.Write(config.Schema())
	return err
}
