// Package redistest gives tests real Redis servers: one, a cluster, or a
// primary with replicas and sentinels. They listen on free loopback ports, keep
// nothing on disk unless asked, and end with the test, or with its process if
// that is killed.
//
// The program is what COMPORTA_REDIS_SERVER names, else redis-server or
// valkey-server on the PATH. A test that needs just one server runs against the
// one at COMPORTA_TEST_REDIS (redis://host:port), where that is set.
package redistest
