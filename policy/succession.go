package policy

import "github.com/comporta/comporta"

// Follow puts the engine in the place of another one on the same stores, as when a
// policy is changed: what is under way there is decided, and settled, by this one's
// numbers from now on, so that no key goes back to the old ones. Call it right before
// requests are put to this engine and to the other no more; limits are the same by
// their names. It is safe for concurrent use with all but itself.
func (e *Engine) Follow(before *Engine) {
	parts := make(map[string]*part)
	for _, c := range e.all() {
		for i := range c.parts {
			parts[c.parts[i].limit.Name] = &c.parts[i]
		}
	}
	old, now := before.overrides.Load(), e.overrides.Load()
	for _, c := range before.all() {
		for i := range c.parts {
			was := &c.parts[i]
			is := parts[was.limit.Name]
			if is == nil {
				continue
			}
			is.own.rule.Follow(was.own.rule)
			for plan, n := range was.plans {
				next := is.plans[plan]
				if next == nil {
					next = &is.own
				}
				next.rule.Follow(n.rule)
			}
			followOne(is.block, was.block)
			followOne(is.fresh, was.fresh)
		}
	}
	if old == nil || now == nil {
		return
	}
	for client, n := range old.clients {
		is := parts[client.limit.Name]
		if is == nil {
			continue
		}
		if next := now.clients[overridden{client.id, is.limit}]; next != nil {
			next.rule.Follow(n.rule)
		}
	}
}

func followOne(is, was *comporta.Rule) {
	if is != nil && was != nil {
		is.Follow(was)
	}
}
