package memstore

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/comporta/comporta"
)

// saveEvery is half of what a kill -9 may lose, so that a slow disk is in it.
const saveEvery = 500 * time.Millisecond

// compactAfter is how much is appended before the file is written anew, where
// that is more than twice its snapshot.
const compactAfter = 1 << 20

// longestSave is how many bytes of states a record holds, give or take a shard's.
const longestSave = 64 << 20

// saver writes the save file. One goroutine uses it: the background's, then Close's.
type saver struct {
	path   string
	lock   *os.File // held while the store is open
	file   *os.File
	rules  []*comporta.Rule // that the file knows, by number less one
	base   int64            // size of the snapshot
	size   int64
	broken bool // a save failed: what it held is not in the file, so the next is a snapshot
	body   []byte
	out    []byte
}

// open reads the file, if there is one, and begins a new one from what it held.
func (s *Store) open(path string) error {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return err
	}
	s.saver = &saver{path: path, lock: lock}
	if err := s.read(path); err != nil {
		lock.Close()
		return err
	}
	if err := s.snapshot(); err != nil {
		lock.Close()
		return err
	}
	s.saving.Store(true)
	s.Sweep()
	for s.stats.keys.Load() > s.maxKeys && s.makeRoom() {
		// The bound is smaller than it was: no take need wait for that.
	}
	return nil
}

// read loads the file whole or not at all. A damaged one is set aside.
func (s *Store) read(path string) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return nil // nothing was ever written to it
	}
	own := s.key
	r := &records{r: bufio.NewReaderSize(f, 1<<20), size: info.Size()}
	switch err := s.load(r); err := err.(type) {
	case nil:
		return nil
	case *damage:
		s.reset(own)
		aside := fmt.Sprintf("%s.damaged-%s", path, s.clock.now().Time().Format("20060102T150405.000"))
		if err := os.Rename(path, aside); err != nil {
			return fmt.Errorf("the save file is damaged, and cannot be set aside: %w", err)
		}
		s.logger.Error("the save file is damaged: it was set aside, and all budgets start full",
			"file", path, "set_aside", aside, "problem", err.Error())
		return nil
	default:
		return err
	}
}

// load fills the store from a file's records.
func (s *Store) load(r *records) error {
	key, err := r.key()
	if err != nil {
		return err
	}
	s.key = key
	var rules []*comporta.Rule
	for {
		start := r.offset
		kind, body, err := r.next()
		switch err {
		case nil:
		case io.EOF:
			return nil
		case errTorn:
			s.logger.Warn("the save file's last record was torn by a crash: it is left out",
				"file", s.saver.path, "at_byte", start, "of_bytes", r.size)
			return nil
		default:
			return err
		}
		switch kind {
		case recordRule:
			rule, err := decodeRule(body)
			if err != nil {
				return &damage{start, err.Error()}
			}
			rules = append(rules, rule)
		case recordStates:
			for len(body) > 0 {
				var k saved
				if k, body, err = decodeState(body, rules); err != nil {
					return &damage{start, err.Error()}
				}
				s.restore(&k)
			}
		case recordEnd:
		default:
			return &damage{start, fmt.Sprintf("a record of unknown kind %q", kind)}
		}
	}
}

// restore makes a saved key what the store knows of it.
func (s *Store) restore(k *saved) {
	sh := &s.shards[k.hash.shard()]
	seq := sh.lock()
	defer sh.unlock(seq)
	var c comporta.Cell
	at := sh.load(s, k.hash, &c)
	ring := sh.ringOf(s, k.hash, at)
	if at.ok {
		sh.drop(s, k.hash, at, ring)
		at = sh.load(s, k.hash, &c)
	}
	if k.state.Zero() {
		return
	}
	ring = noRing
	if k.state.Under.Algorithm() == comporta.SlidingLog {
		ring = sh.newRing()
		r := &sh.rings[ring]
		for _, e := range k.entries {
			r.apply(&comporta.Edit{Add: e.Cost, AddAt: e.At}, k.state.Under, false)
		}
		s.stats.logBytes.Add(int64(r.bytes()))
	}
	sh.write(s, k.hash, &k.state, at, ring)
}

// reset empties the store: what was loaded of a damaged file is not kept.
func (s *Store) reset(key hashKey) {
	for i := range s.shards {
		sh := &s.shards[i]
		seq := sh.lock()
		sh.setTable(newTable(fewestSlots))
		sh.live, sh.rings, sh.free, sh.wide, sh.dirty = 0, nil, nil, nil, nil
		sh.unlock(seq)
	}
	s.key = key
	s.stats.keys.Store(0)
	s.stats.logBytes.Store(0)
}

// save appends what has changed of the limits that take an hour or more to fill.
func (s *Store) save() {
	v := s.saver
	if v.broken || v.size-v.base > max(compactAfter, 2*v.base) {
		s.saved(s.snapshot())
		return
	}
	v.out = v.out[:0]
	for i := range s.shards {
		s.gather(i, true)
		v.states(longestSave)
	}
	v.states(0) // one record, of which a crash may tear any part
	if len(v.out) > 0 {
		s.saved(v.append())
	}
}

// saved says once when saving begins to fail, and once when it works again.
func (s *Store) saved(err error) {
	if err != nil {
		s.forgetChanges()
	}
	switch v := s.saver; {
	case err != nil && !v.broken:
		v.broken = true
		s.logger.Error("saving fails: a crash now would lose what is counted from here on", "file", v.path, "problem", err.Error())
	case err == nil && v.broken:
		v.broken = false
		s.logger.Info("saving works again", "file", v.path)
	}
}

func (v *saver) append() error {
	n, err := v.file.Write(v.out)
	v.size += int64(n)
	if err != nil {
		return err
	}
	return v.file.Sync()
}

// forgetChanges is for when the next save is of all keys anyway.
func (s *Store) forgetChanges() {
	for i := range s.shards {
		sh := &s.shards[i]
		seq := sh.lock()
		clear(sh.dirty)
		sh.unlock(seq)
	}
}

// gather appends a shard's keys to the states that are to be written: those that
// changed, or all.
func (s *Store) gather(i int, changed bool) {
	sh := &s.shards[i]
	seq := sh.lock()
	defer sh.unlock(seq)
	if changed {
		for h := range sh.dirty {
			s.appendKey(sh, h)
		}
	} else {
		t := sh.table()
		for slot := range t.slots {
			if words := t.read(slot); slotRule(words[1]) != noRule {
				s.appendKey(sh, hashIn(i, words))
			}
		}
	}
	clear(sh.dirty)
}

// states makes a record of the states that were gathered, if they are over so many bytes.
func (v *saver) states(over int) {
	if len(v.body) > over {
		v.out = appendRecord(v.out, recordStates, v.body)
		v.body = v.body[:0]
	}
}

func (s *Store) appendKey(sh *shard, h hash) {
	var c comporta.Cell
	sh.load(s, h, &c)
	log, _ := c.Log.(*ring)
	number := 0
	if !c.State.Zero() {
		number = s.saver.number(c.State.Under)
	}
	s.saver.body = appendState(s.saver.body, h, number, &c.State, log)
}

// number is a rule's number in the file, which is told of it before its states.
func (v *saver) number(rule *comporta.Rule) int {
	i := slices.Index(v.rules, rule)
	if i < 0 {
		i = slices.IndexFunc(v.rules, rule.Same)
	}
	if i < 0 {
		i = len(v.rules)
		v.rules = append(v.rules, rule)
		v.out = appendRecord(v.out, recordRule, encodeRule(rule))
	}
	return i + 1
}

// snapshot writes all keys to a new file and puts it in place of the old one.
func (s *Store) snapshot() (err error) {
	v := s.saver
	// One name, so that what a kill leaves of it is written over by the next.
	f, err := os.OpenFile(v.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	size := int64(0)
	v.rules, v.out = v.rules[:0], append(v.out[:0], head(s.key)...)
	for i := range s.shards {
		s.gather(i, false)
		v.states(0)
		if len(v.out) > 1<<20 || i == len(s.shards)-1 {
			if i == len(s.shards)-1 {
				v.out = appendRecord(v.out, recordEnd, nil)
			}
			n, err := f.Write(v.out)
			if err != nil {
				return err
			}
			size += int64(n)
			v.out = v.out[:0]
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), v.path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(v.path)); err != nil {
		return err
	}
	if v.file != nil {
		v.file.Close()
	}
	v.file, v.base, v.size = f, size, size
	return nil
}

// closeSave writes all states and lets the file go.
func (s *Store) closeSave() error {
	err := s.snapshot()
	s.saver.file.Close()
	s.saver.lock.Close()
	return err
}
