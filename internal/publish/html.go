package publish

import (
	"bytes"
	"fmt"
	"html"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"github.com/comporta/comporta/policy"
)

// HTML is the page as one HTML document that needs nothing else. Raw HTML in the
// advice is left out.
func HTML(p *policy.Policy, o Options) (string, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var body bytes.Buffer
	if err := markdown.Convert([]byte(Markdown(p, o)), &body); err != nil {
		return "", fmt.Errorf("the page cannot be written as HTML: %w", err)
	}
	return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<title>" + html.EscapeString(o.title()) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n" +
		body.String() + "</body>\n</html>\n", nil
}

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1.25rem; }
h1, h2, h3 { line-height: 1.2; margin: 2.2em 0 .6em; }
h1 { margin-top: 0; }
h3 { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; }
th, td { text-align: left; vertical-align: top; padding: .4em .7em; border-bottom: 1px solid var(--line); }
th { font-weight: 600; background: var(--soft); }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; background: var(--soft); border-radius: 4px; }
code { padding: .1em .3em; }
pre { padding: .8em 1em; overflow-x: auto; }
pre code { padding: 0; background: none; }
`
