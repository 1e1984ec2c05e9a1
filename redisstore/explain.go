package redisstore

// Explain says in words what an error of a client or of a store means, and what
// to do about it. It repeats nothing of the error.
func Explain(err error) (meaning, todo string) {
	t := troubles[cause(err)]
	return t.meaning, t.todo
}
