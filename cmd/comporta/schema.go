package main

import "github.com/comporta/comporta/config"

// schemaCmd prints the JSON Schema of policy files, for editors and for CI.
type schemaCmd struct{}

// Run prints it.
func (schemaCmd) Run(std *streams) error {
	_, err := std.Out.Write(config.Schema())
	return err
}
