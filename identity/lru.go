package identity

// lru is a table of at most so many values by sum. Where it is full, the one that
// was used longest ago makes room.
type lru[V any] struct {
	most int
	at   map[digest]*node[V]
	ends node[V] // its next is the newest, its prev the oldest
}

type node[V any] struct {
	prev, next *node[V]
	sum        digest
	value      V
}

func newLRU[V any](most int) *lru[V] {
	l := &lru[V]{most: most, at: make(map[digest]*node[V])}
	l.ends.prev, l.ends.next = &l.ends, &l.ends
	return l
}

// get is the value there, nil where there is none. It is used by that.
func (l *lru[V]) get(s digest) *V {
	n := l.at[s]
	if n == nil {
		return nil
	}
	n.unlink()
	l.link(n)
	return &n.value
}

func (l *lru[V]) put(s digest, value V) {
	n := l.at[s]
	switch {
	case n != nil:
		n.unlink()
	case len(l.at) == l.most:
		n = l.ends.prev
		l.drop(n.sum)
	default:
		n = new(node[V])
	}
	n.sum, n.value = s, value
	l.at[s] = n
	l.link(n)
}

func (l *lru[V]) drop(s digest) {
	if n := l.at[s]; n != nil {
		n.unlink()
		delete(l.at, s)
	}
}

func (n *node[V]) unlink() { n.prev.next, n.next.prev = n.next, n.prev }

func (l *lru[V]) link(n *node[V]) {
	n.prev, n.next = &l.ends, l.ends.next
	n.prev.next, n.next.prev = n, n
}
