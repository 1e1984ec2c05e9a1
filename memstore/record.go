package memstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The save file is a head and records. The head is the magic, the hash's key
// and a checksum. A record is its kind and length, a checksum of those, its
// body, and a checksum of the body. So a wrong length is seen before it leads
// astray, and a record that a crash cut off at the end is told from damage.
//
// First comes a snapshot, written aside and renamed into place, which the end
// record closes: it is whole or it is damaged. What is appended after it may be
// torn at the very end.
const (
	magic    = "comporta.state 1\n"
	headSize = len(magic) + 16 + 4

	recordRule   = 'R' // a rule that states name by its number
	recordStates = 'S' // states, and keys that are gone
	recordEnd    = 'E' // the snapshot is complete

	recordHead = 1 + 4 + 4
	recordTail = 4
	// A longer record was not written by us: a shard's states are one record.
	longestRecord = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func head(key hashKey) []byte {
	b := append(make([]byte, 0, headSize), magic...)
	b = binary.LittleEndian.AppendUint64(b, key[0])
	b = binary.LittleEndian.AppendUint64(b, key[1])
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendRecord appends a record with that body.
func appendRecord(b []byte, kind byte, body []byte) []byte {
	start := len(b)
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
}

// errTorn is the end of a file that a crash cut off.
var errTorn = errors.New("the last record is torn")

// damage is what is wrong with a file, and where.
type damage struct {
	offset int64
	what   string
}

func (d *damage) Error() string { return fmt.Sprintf("at byte %d: %s", d.offset, d.what) }

// records reads a file from its head on.
type records struct {
	r      io.Reader
	size   int64 // of the file
	offset int64 // of what is read next
	closed bool  // the end record has come: a torn end is no damage
	buf    []byte
}

func (r *records) damaged(format string, args ...any) error {
	return &damage{r.offset, fmt.Sprintf(format, args...)}
}

// key reads the head.
func (r *records) key() (key hashKey, err error) {
	b, err := r.bytes(headSize)
	if err != nil {
		return key, err
	}
	if string(b[:len(magic)]) != magic {
		return key, r.damaged("this is no save file of this version: it does not begin with %q", magic)
	}
	key = hashKey{binary.LittleEndian.Uint64(b[len(magic):]), binary.LittleEndian.Uint64(b[len(magic)+8:])}
	if !bytes.Equal(b, head(key)) {
		return key, r.damaged("the head's checksum is wrong")
	}
	r.offset += int64(headSize)
	return key, nil
}

// bytes reads n bytes; fewer are torn or damage.
func (r *records) bytes(n int) ([]byte, error) {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	if _, err := io.ReadFull(r.r, b); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, r.cut("the file ends within a record")
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// cut is what a record means that is not whole: torn where that can be.
func (r *records) cut(what string) error {
	if r.closed {
		return errTorn
	}
	return r.damaged("%s", what)
}

// next is the next record; io.EOF when there is none. The body is valid until
// the next call.
func (r *records) next() (kind byte, body []byte, err error) {
	if r.offset == r.size {
		if !r.closed {
			return 0, nil, r.damaged("the snapshot has no end")
		}
		return 0, nil, io.EOF
	}
	b, err := r.bytes(recordHead)
	if err != nil {
		return 0, nil, err
	}
	kind = b[0]
	size := int64(binary.LittleEndian.Uint32(b[1:]))
	if binary.LittleEndian.Uint32(b[5:]) != crc32.Checksum(b[:5], castagnoli) {
		if r.zeros() { // the file grew, and its bytes never came
			return 0, nil, r.cut("a record's head has a wrong checksum, and zeros follow")
		}
		return 0, nil, r.damaged("a record's head has a wrong checksum")
	}
	end := r.offset + recordHead + size + recordTail
	if size > longestRecord {
		return 0, nil, r.damaged("a record of %d bytes", size)
	}
	if end > r.size {
		return 0, nil, r.cut("the file ends within a record")
	}
	if b, err = r.bytes(int(size) + recordTail); err != nil {
		return 0, nil, err
	}
	if binary.LittleEndian.Uint32(b[size:]) != crc32.Checksum(b[:size], castagnoli) {
		if end == r.size || r.zeros() {
			return 0, nil, r.cut("the last record's checksum is wrong")
		}
		return 0, nil, r.damaged("a record's checksum is wrong")
	}
	r.offset = end
	r.closed = r.closed || kind == recordEnd
	return kind, b[:size], nil
}

// zeros says whether the rest of the file is zero.
func (r *records) zeros() bool {
	chunk := make([]byte, 4096)
	for {
		n, err := r.r.Read(chunk)
		if len(bytes.Trim(chunk[:n], "\x00")) > 0 {
			return false
		}
		if err != nil {
			return err == io.EOF
		}
	}
}
