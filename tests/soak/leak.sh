#!/usr/bin/env bash
# leak.sh: 100 000 mixed requests must leave the daemon as large as it was.
#
#   tests/soak/leak.sh [BUILD [COUNT [WARM]]]
#
# WARM requests (twice as many by default) come first, until pools, the cache and the allocator's arenas have the
# size that they keep. Then front and workers may hold 2 % more resident memory after COUNT of them, and not
# one descriptor nor one byte of the device more (kiln-bench --watch compares those).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(cd "${1:-build}" && pwd)
count=${2:-100000}
warm=${3:-$((2 * count))}
folder=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$build/kilnd" --listen 127.0.0.1:0 --port-file "$folder/port" --device "${KILN_TEST_DEVICE:-cpu}" \
    --cache-bytes 16M --max-iterations 1000000 >"$folder/log" 2>&1 &
daemon=$!
for _ in $(seq 600); do
    if [[ -s $folder/port ]] && curl -sf "http://127.0.0.1:$(<"$folder/port")/readyz" >/dev/null; then break; fi
    sleep 0.1
done
url=http://127.0.0.1:$(<"$folder/port")

# Resident memory of the daemon and its children, in KiB.
resident() {
    local pid sum=0
    for pid in "$daemon" $(ps -o pid= --ppid "$daemon"); do
        sum=$((sum + $(awk '/^VmRSS:/ {print $2}' "/proc/$pid/status")))
    done
    echo $sum
}

mix() {
    "$build/kiln-bench" --scenario bench/scenarios/mix.json --connections 16 --timeout 120 "$@" "$url"
}

mix --count "$warm" >"$folder/warm" || { cat "$folder/warm"; exit 1; }
before=$(resident)
code=0
mix --count "$count" --watch "$daemon" >"$folder/report" || code=$?
after=$(resident)
sed -n '/What the daemon holds/,/grew\./p;/^Right:/p' "$folder/report"
growth=$(awk -v a="$after" -v b="$before" 'BEGIN {printf "%+.2f", 100 * (a - b) / b}')
met=$(awk -v g="$growth" -v c="$code" 'BEGIN {print (g <= 2 && c == 0) ? "yes" : "NO"}')
echo "acceptance: 100 000 mixed requests | $count after $warm to warm up: resident $before KiB before, $after KiB" \
    "after ($growth %), $(grep -c '| ok |' "$folder/report") of other figures unchanged, $(grep -o 'Right: [0-9]*' \
        "$folder/report" | tail -n 1) | RSS +2% at most, descriptors and device memory unchanged | $met"
[[ $code == 0 ]]
