// Package identity says who is asking: by address, by a header, by a part of
// the path, or everyone as one.
package identity
