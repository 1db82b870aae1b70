#!/usr/bin/env bash
# Runs the fuzz targets of the module in the working directory, one after the other.
#
#   FUZZTIME=10s  how long each runs (a duration, or a count such as 1000x)
#   FUZZ=Levels   only those whose names match the regular expression
#
# Which targets there are, go test says. One that finds something does not keep the others from running; at the end the
# paths of all inputs that were found are listed, and the script fails.
set -euo pipefail
fuzztime=${FUZZTIME:-10s}
filter=${FUZZ:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# "FuzzX" lines, then "ok PACKAGE TIME".
if ! go test -list '^Fuzz' ./... >"$log"; then
	cat "$log"
	exit 1
fi
targets=$(awk '$1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 } /^Fuzz/ { names[++n] = $1 }' "$log")
targets=$(awk -v filter="$filter" '$2 ~ filter' <<<"$targets")
if [[ -z $targets ]]; then
	echo "no fuzz target matches ${filter}" >&2
	exit 1
fi

# Go sometimes takes the end of its own time for a failure: "context deadline exceeded", without an input and without a
# test that has failed at anything. That is an end like any other.
out_of_time() {
	grep -q '^ *context deadline exceeded$' "$log" && ! grep -qE 'Failing input|panic|_test\.go:|fatal error' "$log"
}

found=()
while read -r package target; do
	echo "$target ($package), $fuzztime"
	if go test -tags fuzzing -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" >"$log" 2>&1 </dev/null || out_of_time; then
		grep '^fuzz: elapsed' "$log" | tail -1 || true
		continue
	fi
	cat "$log"
	input=$(sed -n 's|^ *Failing input written to ||p' "$log" | tail -1)
	found+=("$target: ${input:+$(go list -f '{{.Dir}}' "$package")/}${input:-no input was kept, see above}")
done <<<"$targets"

if ((${#found[@]} > 0)); then
	echo "fuzzing found:" >&2
	printf '  %s\n' "${found[@]}" >&2
	exit 1
fi
