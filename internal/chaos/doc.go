// Package chaos breaks real stores under load. Five gateways with one policy
// stand behind a load balancer and in front of a Redis, a Sentinel trio or a
// cluster, which its tests pause, kill, fill, cut off and move; they state what
// each failure may cost, and measure it. The table in docs/reliability.md is theirs.
package chaos
