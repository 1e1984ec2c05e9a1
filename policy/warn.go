package policy

// Warns says whether the client's use, with this request, is at [Limit.WarnAt] or
// past it, where the limit has one.
func (a *Applied) Warns() bool {
	full := a.Decision.Limit
	return a.Limit.WarnAt > 0 && full > 0 && !a.shadow && !a.Rule.Limit().Unlimited && a.past(full-a.Decision.Remaining)
}
