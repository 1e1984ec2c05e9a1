package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/comporta/comporta/policy"
)

// marks reads how the upstream is told of requests over a limit that marks. It comes
// after the limits; n is nil where the file says nothing.
func (r *reader) marks(n *node) {
	marking := slices.ContainsFunc(r.config.Policy.Limits, func(l *policy.Limit) bool { return l.OnLimit == policy.Mark })
	if n == nil && !marking {
		return
	}
	m := &policy.Marks{Header: "Comporta-Mark"}
	r.config.Policy.Marks = m
	r.config.MarksFile = r.beside("marks.secret")
	if r.config.SecretFile != "" {
		r.config.MarksFile = filepath.Join(filepath.Dir(r.config.SecretFile), "marks.secret")
	}
	if n == nil {
		return
	}
	words := r.mapping(n, "marks", marksWords)
	if e, ok := words["header"]; ok {
		said, _ := r.fieldName(e.value, "header", m.Header)
		m.Header = cmp.Or(said, m.Header)
	}
	if e, ok := words["secret_file"]; ok {
		if said, ok := r.text(e.value, "secret_file", "marks.secret"); ok {
			r.config.MarksFile = r.beside(said)
			if r.config.MarksFile == r.config.SecretFile {
				r.fault(e.value, "marks have the secret that clients' values are hashed with", "name another file: whoever checks marks would know that secret too")
			}
		}
	}
	if !marking {
		r.warn(n, "W-MARKS-UNUSED", "no limit marks what is over it", "write on_limit: mark into one, or leave marks out")
	}
}

// LoadMarks gives the policy the key that marks are signed with, before the first
// request: what MarksFile holds, blanks around it aside. Where there is no such file
// it is made, readable by its owner alone; the application that reads marks needs the
// same key. It does nothing where no limit marks. No error repeats what is in the file.
func (c *Config) LoadMarks() error {
	if c.Policy.Marks == nil {
		return nil
	}
	if c.MarksFile == "" {
		return errors.New("marks have no secret file")
	}
	key, err := secretOf(c.MarksFile)
	if err != nil {
		return fmt.Errorf("secret file of marks: %w", err)
	}
	c.Policy.Marks.Key = key
	return nil
}
