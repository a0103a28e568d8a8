#!/usr/bin/env bash
# run.sh: the long forms of everything in docs/testing.md's acceptance table, and that table with figures.
#
#   tests/soak/run.sh [BUILD [TABLE]]    the build folder, build/ by default; where to write the table
#
# Takes about a quarter of an hour on two cores. What a part needs and is not there (clang, an index of
# Python packages) is left out and said so. FUZZ_SECONDS: of libFuzzer for each parser (60). KILN_TEST_DEVICE
# as in every test. Exit code 0 when every part passed and every figure met its target.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(cd "${1:-build}" && pwd) || exit 2
table=${2:-$build/acceptance.md}
log=$build/acceptance.log
sanitized=build-address
export KILN_SOAK=1
: >"$log"
failed=()

# part NAME COMMAND…: what it prints is shown and kept.
part() {
    local name=$1 code=0
    shift
    echo "== $name" | tee -a "$log"
    "$@" 2>&1 | tee -a "$log"
    code=${PIPESTATUS[0]}
    if [[ $code == 77 ]]; then
        echo "   left out" | tee -a "$log"
    elif [[ $code != 0 ]]; then
        failed+=("$name")
    fi
}

long_forms() {
    ctest --test-dir "$build" --output-on-failure -V -R \
        '^(unit\.(test_json_conformance|driver_faults)|api\.(api_(arrays|devices|faults|framing|hostile|images|life|overload|requests)|schemathesis))$'
}

# The suites of hostile bytes under ASan and UBSan, which write what they find into files of their own.
sanitizers() {
    local suites=(arrays images requests framing hostile) suite code=0 reports
    cmake -S . -B "$sanitized" -G Ninja -DKILN_TESTS=ON -DKILN_CUDA=OFF \
        -DKILN_SANITIZE=address,undefined >/dev/null || return
    cmake --build "$sanitized" --parallel "$(nproc)" --target kilnd "${suites[@]/#/api_}" | tail -n 1
    rm -rf "$sanitized/reports"
    mkdir -p "$sanitized/reports"
    local options="log_path=$PWD/$sanitized/reports/report:halt_on_error=1"
    for suite in "${suites[@]}"; do
        KILND=$sanitized/kilnd ASAN_OPTIONS=$options UBSAN_OPTIONS=$options:print_stacktrace=1 \
            "$sanitized/api_$suite" || code=1
    done
    reports=$(find "$sanitized/reports" -type f | wc -l)
    if [[ $reports != 0 ]]; then head -n 60 "$sanitized"/reports/*; fi
    echo "acceptance: thousands of raw hostile HTTP files under ASan | suites ${suites[*]}, long forms, with" \
        "AddressSanitizer and UBSan in front and worker: $reports reports | 0 reports |" \
        "$([[ $reports == 0 && $code == 0 ]] && echo yes || echo NO)"
    return $((code | (reports > 0)))
}

started=$SECONDS
part "long forms" long_forms
part "100 000 mixed requests" tests/soak/leak.sh "$build"
part "sanitizers" sanitizers
part "libFuzzer" scripts/fuzz.sh "${FUZZ_SECONDS:-60}"

{
    echo "| row | figure | target | met |"
    echo "|---|---|---|---|"
    sed -n 's/^\([0-9]*: \)\{0,1\}acceptance: \(.*\)$/| \2 |/p' "$log"
} >"$table"
echo
cat "$table"
missed=$(grep -c '| NO |$' "$table")
echo "$((SECONDS - started)) s; ${#failed[@]} parts failed${failed[*]:+: ${failed[*]}}; $missed figures missed their target"
[[ ${#failed[@]} == 0 && $missed == 0 ]]
