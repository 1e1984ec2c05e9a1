//go:build !unix

package memstore

import "os"

// lockFile opens the lock file; where there are no file locks, it is up to the
// operator to give each process a save file of its own.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

func syncDir(string) error { return nil }
