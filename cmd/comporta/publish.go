package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/comporta/comporta/internal/publish"
)

// publishCmd writes the limits of a policy for those who call the API.
type publishCmd struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"The policy file."`
	Format string `enum:"markdown,html,openapi" default:"markdown" placeholder:"FORMAT" help:"markdown (the default), html, or openapi: an overlay for a description of the API."`
	Title  string `placeholder:"TEXT" help:"What heads the page (default: Rate limits)."`
	Advice string `placeholder:"FILE" help:"Your own advice to callers, a Markdown file: webhooks, bulk endpoints, larger pages."`
}

// maxAdvice bounds the file of the operator's advice.
const maxAdvice = 1 << 20

// Run writes the page on the standard output.
func (c *publishCmd) Run(std *streams) error {
	cfg, err := load(c.Config, std)
	if err != nil {
		return err
	}
	o := publish.Options{Title: c.Title}
	if cfg.SelfService != nil {
		o.SelfService = cfg.SelfService.Path
	}
	if c.Advice != "" {
		if o.Advice, err = readAdvice(c.Advice); err != nil {
			return err
		}
	}
	var page string
	switch c.Format {
	case "html":
		page, err = publish.HTML(cfg.Policy, o)
	case "openapi":
		page, err = publish.Overlay(cfg.Policy, o)
	default:
		page = publish.Markdown(cfg.Policy, o)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(std.Out, page)
	return err
}

func readAdvice(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return "", fmt.Errorf("cannot read %s: %w", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAdvice+1))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(text) > maxAdvice {
		return "", fmt.Errorf("%s is larger than 1 MiB: is it the right file?", name)
	}
	return string(text), nil
}
