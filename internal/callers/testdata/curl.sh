#!/bin/sh
# Makes a request said on the command line some times with curl, in turn or
# together. Each call's end is a line, {"status": 200}. Without --fail the body of a refusal goes
# to the output, from which 7.88 cuts it off again before it retries; where that
# cannot be done, as with /dev/null, it ends with error 23 instead.
settings=$1 method=$2 url=$3 key=$4 count=$5 order=$6
each='{"status": %{http_code}}\n'
set -- --request "$method" --header "X-API-Key: $key" --silent --output /dev/null --write-out "$each" "$url?call=[1-$count]"
[ "$order" = in-turn ] || set -- --parallel --parallel-immediate "$@"
case $settings in
plain)
	exec curl "$@" ;;
bare)
	exec curl --fail --retry 5 "$@" ;;
tuned)
	# as documented
	exec curl --fail --retry 5 --retry-max-time 60 "$@"
	# end
	;;
esac
