#!/usr/bin/env bash
# test.sh: sets the machine up, builds everything with warnings as errors, and runs every test.
#
#   ./scripts/test.sh [--with-cuda] [--require-cuda] [-L LABEL] [-R REGEX] [-j JOBS]
#   ./scripts/test.sh --sanitize address,undefined|thread [-L LABEL] [-R REGEX] [-j JOBS]
#
#   --sanitize       build everything with these sanitizers into build-address/ or build-thread/ and run
#                    the tests there; any report of theirs, of workers too, is a failure
#   --with-cuda      fetch a CUDA compiler where there is none (NVIDIA's wheels, into build/)
#   --require-cuda   the same, and fail without the CUDA backend; CI=true means this
#   -L, -R, -j       handed to ctest: a label (unit, fuzz, kernel, api, oracle), a name, parallelism
#
# A finding of scripts/lint.sh is told and, with CI=true, a failure.
# KILN_TEST_DEVICE chooses the device of the API and oracle tests (cpu by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh

cuda=auto
require=AUTO
sanitize=""
ctest_arguments=()
jobs=2
if [[ ${CI:-} == true ]]; then
    cuda=wheels require=ON
fi
while [[ $# -gt 0 ]]; do
    case $1 in
    --with-cuda) cuda=wheels ;;
    --require-cuda) cuda=wheels require=ON ;;
    --sanitize) sanitize=${2:?--sanitize needs address,undefined or thread}; shift ;;
    -L | -R) ctest_arguments+=("$1" "${2:?$1 needs a value}"); shift ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "test.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    esac
    shift
done

# sanitize_run LIST: a build folder of its own, the tests in it, then a look for reports. The
# compiler's warnings are not errors: the sanitizers' code makes it see ghosts.
sanitize_run() {
    local list=$1 arguments=("${ctest_arguments[@]}") from=$SECONDS result=0
    local build=$SETUP_ROOT/build-${1%%,*}
    local reports=$build/reports
    local log="log_path=$reports/report:halt_on_error=1"
    setup_say "Build with -fsanitize=$list in $build"
    SETUP_BUILD=$build SETUP_CUDA_HOME="" setup_configure -DKILN_TESTS=ON -DKILN_CUDA=OFF \
        "-DKILN_SANITIZE=$list" >/dev/null
    if [[ ${#arguments[@]} == 0 ]]; then
        arguments=(-L 'unit|api') # parsers have sanitizers in every build (label fuzz)
    fi
    cmake --build "$build" --parallel "$(nproc)" | tail -n 1
    rm -rf "$reports"
    mkdir -p "$reports"
    setup_say "Test with -fsanitize=$list"
    (cd "$build" && ASAN_OPTIONS=$log UBSAN_OPTIONS=$log:print_stacktrace=1 \
        TSAN_OPTIONS=$log \
        ctest --output-on-failure -j "$jobs" "${arguments[@]}") || result=1
    if [[ -n $(ls "$reports") ]]; then
        head -n 60 "$reports"/*
        result=1
    fi
    setup_say "-fsanitize=$list: $((SECONDS - from)) s, $(ls "$reports" | wc -l) reports"
    return $result
}

started=$SECONDS
setup_packages tests
if [[ -n $sanitize ]]; then
    sanitize_run "$sanitize"
    exit
fi
setup_cuda "$cuda"
setup_say "Configure"
setup_configure -DKILN_TESTS=ON -DKILN_WERROR=ON "-DKILN_CUDA=$require"
setup_say "Build"
cmake --build "$SETUP_BUILD" --parallel "$(nproc)"
setup_say "Lint"
# What the layout of the sources is like says nothing about this machine: only CI fails for it.
lint=0 lint_means=""
./scripts/lint.sh || lint=1
[[ ${CI:-} == true ]] || lint_means=": the tests decide the result all the same"

setup_say "Test"
built=$SECONDS
# ctest's closing lines stay the last ones: the times are printed above them.
summarise() {
    local line
    while IFS= read -r line; do
        if [[ $line == *"% tests passed, "* ]]; then
            setup_say "$((SECONDS - started)) s in all: set-up, build and lint $((built - started)) s, tests $((SECONDS - built)) s"
            if [[ $lint != 0 ]]; then setup_say "lint FAILED (see above)$lint_means"; fi
        fi
        printf '%s\n' "$line"
    done
}
tests=0
(cd "$SETUP_BUILD" && ctest --output-on-failure -j "$jobs" "${ctest_arguments[@]}" 2>&1) | summarise || tests=1
if [[ ${CI:-} == true && $lint != 0 ]]; then exit 1; fi
exit $tests
