#!/usr/bin/env bash
# run.sh: schemathesis, all checks, against a daemon's own /openapi.json.
#
#   KILND=build/kilnd tests/schemathesis/run.sh [VENV]
#
# Exit code 77 where schemathesis is not installed and cannot be (no package index): skipped.
# KILN_SOAK in the environment asks for ten times as many examples.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${1:-build/schemathesis-venv}
program=$(command -v schemathesis || true)
if [[ -z $program && ! -x $venv/bin/schemathesis ]]; then
    if ! python3 -m venv "$venv" ||
        ! timeout 120 "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 \
            --timeout 10 'schemathesis==4.*' 2>"$venv/pip.log"; then
        echo "schemathesis is not installed and cannot be fetched: skipped"
        exit 77
    fi
fi
program=${program:-$venv/bin/schemathesis}

folder=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; rm -rf "$folder"' EXIT
"${KILND:-build/kilnd}" --listen 127.0.0.1:0 --port-file "$folder/port" --device cpu --arena 512M \
    --max-iterations 2000 --max-frequencies 20000 --max-pixels 4000000 >"$folder/log" 2>&1 &
daemon=$!
for _ in $(seq 600); do
    if [[ -s $folder/port ]] && curl -sf "http://127.0.0.1:$(<"$folder/port")/readyz" >/dev/null; then break; fi
    sleep 0.1
done
cd "$folder"
base=http://127.0.0.1:$(<port)
code=0
SCHEMATHESIS_HOOKS=$here/hooks.py "$program" --config-file "$here/schemathesis.toml" run "$base/openapi.json" \
    --checks all --exclude-checks use_after_free --max-examples $((${KILN_SOAK:+10 *} 20)) --seed 1 --no-color --generation-database none \
    >"$folder/report" 2>&1 || code=$?
cat "$folder/report"
kill -0 "$daemon" # it lives
echo "acceptance: schemathesis, all checks | $(grep -o '[0-9]* generated.*' "$folder/report" | tail -n 1)," \
    "$(sed -n 's/^=* *\([^=]*\) in [0-9.]*s =*$/\1/p' "$folder/report" | tail -n 1) | 0 failures |" \
    "$([[ $code == 0 ]] && echo yes || echo NO)"
exit $code
