package doctor

import (
	"fmt"
	"strings"
)

// The oldest versions whose commands the store's script uses.
const (
	redisMajor, redisMinor   = 6, 2
	valkeyMajor, valkeyMinor = 7, 2
)

func (e *examination) version(i info) {
	name, version, ok := "Redis", i["redis_version"], atLeast(i["redis_version"], redisMajor, redisMinor)
	if v := i["valkey_version"]; v != "" {
		name, version, ok = "Valkey", v, atLeast(v, valkeyMajor, valkeyMinor)
	}
	if !ok {
		e.say("version", Fail, "use Redis 6.2 or Valkey 7.2, or later", "%s %s is too old", name, version)
		return
	}
	e.say("version", OK, "", "%s %s", name, version)
}

// nearlyFull is how much of maxmemory may be used, in percent.
const nearlyFull = 80

func (e *examination) memory(i info) {
	most, used, policy := i.number("maxmemory"), i.number("used_memory"), i["maxmemory_policy"]
	const keep = "set maxmemory-policy noeviction, and give other data that may be dropped a server of its own"
	drops := policy != "noeviction"
	switch {
	case most == 0 && drops:
		e.say("memory", Warn, keep, "no maxmemory is set; were there one, %s would drop counts, and whoever was at a limit would start anew", policy)
	case most == 0:
		e.say("memory", Warn, "set maxmemory below what the machine can spare", "no maxmemory is set: a server that grows is ended by the system, with all counts; %s are used now", size(used))
	case drops && policy == "volatile-ttl":
		e.say("memory", Warn, keep, "when %s are full, %s drops the counts that are soonest to expire: those clients start anew a little early", size(most), policy)
	case drops:
		e.say("memory", Fail, keep, "when %s are full, %s drops counts that are live: whoever is at a limit, or has used up a quota, starts anew", size(most), policy)
	case used > most/100*nearlyFull:
		e.say("memory", Warn, "raise maxmemory, or find what takes it: redis-cli --bigkeys", "%s of %s are used; when it is full, takes fail and on_error decides", size(used), size(most))
	default:
		e.say("memory", OK, "", "%s of %s are used, and nothing is dropped when it is full: takes then fail, and on_error decides", size(used), size(most))
	}
}

func (e *examination) persistence(i info) {
	if i["loading"] == "1" {
		e.say("persistence", Warn, "wait, and examine it again", "the server reads its data from disk")
		return
	}
	const look = "free the disk or mend its rights; the server's own log says more"
	if i["rdb_last_bgsave_status"] == "err" {
		e.say("persistence", Fail, look, "the last snapshot failed, after which the server takes no writes (stop-writes-on-bgsave-error)")
	}
	if i["aof_last_write_status"] == "err" {
		e.say("persistence", Fail, look, "the last write to the append-only file failed, after which the server takes no writes")
	}
	aof, sync := i["aof_enabled"] == "1", i["appendfsync"]
	save, told := i["save"]
	const better = "set appendonly yes and appendfsync everysec, if quotas are to outlive a crash"
	switch {
	case aof && sync == "always":
		e.say("persistence", OK, "", "append-only file, written at once: a crash loses nothing")
	case aof && sync == "no":
		e.say("persistence", Warn, "set appendfsync everysec", "append-only file, written when the system likes: a crash of the machine may lose half a minute")
	case aof && sync == "everysec":
		e.say("persistence", OK, "", "append-only file, written each second: a crash loses a second of counts")
	case aof:
		e.say("persistence", OK, "", "append-only file; how often it is written, this user may not see")
	case !told:
		e.say("persistence", Warn, better, "no append-only file; whether there are snapshots, this user may not see")
	case save != "":
		e.say("persistence", Warn, better, "snapshots alone (save %s): a crash loses the counts since the last, and clients get those units again", save)
	default:
		e.say("persistence", Warn, better, "nothing is kept on disk: after a restart every budget is full, quotas too")
	}
}

func (e *examination) replication(i info) {
	if i["role"] == "slave" {
		e.say("replication", Fail, "name the primary, or use redis-sentinel:// or redis-cluster://, which find it", "this is a replica, which takes no writes")
		return
	}
	replicas, least := i.number("connected_slaves"), i["min-replicas-to-write"]
	switch {
	case replicas == 0 && (e.Client.Cluster() || e.Address.Master != ""):
		e.say("replication", Warn, "add a replica", "no replica: if this server goes, nothing takes over, and on_error decides until it is back")
	case replicas == 0:
		e.say("replication", OK, "", "no replica: while this server is away, on_error decides")
	case least != "" && least != "0":
		e.say("replication", OK, "", "%s; a write needs %s of them, so a primary that is cut off stops counting", plural(replicas, "replica"), least)
	default:
		e.say("replication", OK, "", "%s; a failover loses the counts that had not reached them, and a primary that is cut off counts on until it notices (min-replicas-to-write 1 bounds that)", plural(replicas, "replica"))
	}
}

// fork warns of a server that stood still while it began a snapshot.
func (e *examination) fork(i info) {
	took := i.number("latest_fork_usec")
	if limit := e.Timeout.Microseconds(); took > limit/2 {
		e.say("fork", Warn, "turn transparent huge pages off, give the server less data, or persist on a replica",
			"the last fork for a snapshot stopped the server for %s; requests wait %v at most", micros(took), e.Timeout)
		return
	}
	if took > 0 {
		e.say("fork", OK, "", "the last fork for a snapshot took %s", micros(took))
	}
}

func size(bytes int64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; bytes >= 10<<10 && i < len(units)-1; i++ {
		bytes = (bytes + 1023) >> 10
	}
	return fmt.Sprintf("%d %s", bytes, units[i])
}

// micros prints microseconds as milliseconds.
func micros(us int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(us)/1000), "0"), ".") + " ms"
}

func plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
