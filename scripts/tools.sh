#!/usr/bin/env bash
# Installs what the tests need beside Go, where it is missing: as root, by apt.
set -euo pipefail
missing=()
command -v wrk >/dev/null || missing+=(wrk)
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing+=(nginx-light)
command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || missing+=(haproxy)
command -v redis-server >/dev/null || command -v valkey-server >/dev/null || missing+=(redis-server)
# The clients that meet the gateway: Debian's Python is meant, whatever else is in the path.
command -v curl >/dev/null || missing+=(curl)
/usr/bin/python3 -c 'import urllib3' 2>/dev/null || missing+=(python3-urllib3)
command -v node >/dev/null || missing+=(nodejs) # 18.17 or later, as in Debian 12
command -v npm >/dev/null || missing+=(npm)
# Valkey beside it where apt knows it: COMPORTA_REDIS_SERVER says which to test against.
if [ "$(id -u)" -eq 0 ] && ! command -v valkey-server >/dev/null && apt-cache show valkey-server >/dev/null 2>&1; then
	missing+=(valkey-server)
fi
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]}; install them (on Debian: sudo apt-get install ${missing[*]}) and try again" >&2
	exit 1
fi
apt-get update -qq
# A package's service must not start: the tests start their own.
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
