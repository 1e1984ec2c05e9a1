package config

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/comporta/comporta/identity"
)

const (
	secretBytes = 32      // of a secret that is made here
	maxSecret   = 4 << 10 // the largest file of a secret or a password
)

// LoadSecret gives the policy's identities their secret, once, before the first
// request: from the secret file, which it makes, readable by its owner alone,
// where there is none. Without a secret file the secret is random and ends with
// the process, so that what was saved under it is never met again.
//
// Two processes that start at once agree on one secret. A secret file that
// every user of the machine can open is an error. No error repeats what is in it.
func (c *Config) LoadSecret() error {
	return c.ShareSecret(func(mine []byte) ([]byte, error) {
		if mine == nil {
			return newSecret(), nil
		}
		return mine, nil
	})
}

// ShareSecret is LoadSecret where several processes count as one and need the
// same secret: agree is given that of the secret file, nil where none is named,
// and returns the one of all. It is not asked where the policy counts by nothing
// that clients send.
func (c *Config) ShareSecret(agree func(mine []byte) ([]byte, error)) error {
	if !c.hashes {
		return errors.Join(c.secret.Set(newSecret()), c.name())
	}
	var mine []byte
	if c.SecretFile != "" {
		var err error
		if mine, err = secretOf(c.SecretFile); err != nil {
			return fmt.Errorf("secret file: %w", err)
		}
	}
	key, err := agree(mine)
	if err != nil {
		return err
	}
	if err := c.secret.Set(key); err != nil {
		return err
	}
	return c.name()
}

// secretOf is the secret that the file holds; where there is none, one is made.
func secretOf(file string) ([]byte, error) {
	key, err := readSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(file); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = readSecret(file)
		}
	}
	return key, err
}

func newSecret() []byte {
	key := make([]byte, secretBytes)
	rand.Read(key) // never fails: it ends the program where there is no randomness
	return key
}

// readSecret is what the file holds, blanks around it aside.
func readSecret(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s is open to every user of this machine: run chmod 600 %s", file, file)
	}
	data, err := readSmall(f)
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(data)
	if len(key) < identity.MinSecret {
		return nil, fmt.Errorf("%s holds less than %d characters: remove it to have one made, or write 32 random ones", file, identity.MinSecret)
	}
	return key, nil
}

// readSmall is all that a file of a secret or a password holds.
func readSmall(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s is larger than 4 KiB: is it the right file?", f.Name())
	}
	return data, err
}

// makeSecret writes a new secret that is whole or not there at all, also after a
// power cut. It is fs.ErrExist where another process was first.
func makeSecret(file string) error {
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, ".secret-*") // for its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(newSecret()) + "\n")
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), file); err != nil { // unlike a rename, it replaces nothing
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
