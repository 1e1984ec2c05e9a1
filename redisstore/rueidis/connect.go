package rueidis

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/rueidis"
)

// stagger is how long an address has to answer before the next is tried beside it.
const stagger = 100 * time.Millisecond

// open makes a session through whichever address answers first. Each is tried by
// itself: with several, rueidis waits up to a second when one of them is dead.
func open(option rueidis.ClientOption) (*session, error) {
	type result struct {
		session *session
		err     error
	}
	addrs := slices.Clone(option.InitAddress)
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	results := make(chan result)
	tried, over := 0, 0
	next := func() {
		if tried == len(addrs) {
			return
		}
		option := option
		option.InitAddress = addrs[tried : tried+1]
		tried++
		go func() {
			s, err := openOne(option)
			results <- result{s, err}
		}()
	}
	next()
	late := time.NewTicker(stagger)
	defer late.Stop()
	for {
		select {
		case r := <-results:
			over++
			if r.err == nil {
				go func() {
					for ; over < tried; over++ {
						if r := <-results; r.err == nil {
							r.session.leave()
						}
					}
				}()
				return r.session, nil
			}
			if over == len(addrs) {
				return nil, r.err
			}
			next()
		case <-late.C:
			next()
		}
	}
}

func openOne(option rueidis.ClientOption) (*session, error) {
	s := &session{}
	s.users.Store(1)
	option.DialCtxFn = s.dial
	client, err := rueidis.NewClient(option)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, failure(err)
	}
	if !option.ForceSingleClient && option.Sentinel.MasterSet == "" && client.Mode() != rueidis.ClientModeCluster {
		client.Close()
		return nil, errNoCluster
	}
	s.client = client
	return s, nil
}

// errNoCluster is what the server would reply to CLUSTER SLOTS.
const errNoCluster = redisstore.ServerError("ERR This instance has cluster support disabled")

// greet connects to all servers of a cluster, before calls need them.
func (s *session) greet() {
	for _, client := range s.client.Nodes() {
		if s.enter() {
			go func() {
				client.Do(context.Background(), client.B().Ping().Build())
				s.leave()
			}()
		}
	}
}
