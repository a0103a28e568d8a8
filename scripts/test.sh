#!/usr/bin/env bash
# test.sh: sets the machine up, builds everything with warnings as errors, and runs every test.
#
#   ./scripts/test.sh [--with-cuda] [--require-cuda] [-L LABEL] [-R REGEX] [-j JOBS]
#
#   --with-cuda      fetch a CUDA compiler where there is none (NVIDIA's wheels, into build/)
#   --require-cuda   the same, and fail without the CUDA backend; CI=true means this
#   -L, -R, -j       handed to ctest: a label (unit, fuzz, kernel, api, oracle), a name, parallelism
#
# KILN_TEST_DEVICE chooses the device of the API and oracle tests (cpu by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh

cuda=auto
require=AUTO
ctest_arguments=()
jobs=2
if [[ ${CI:-} == true ]]; then
    cuda=wheels require=ON
fi
while [[ $# -gt 0 ]]; do
    case $1 in
    --with-cuda) cuda=wheels ;;
    --require-cuda) cuda=wheels require=ON ;;
    -L | -R) ctest_arguments+=("$1" "${2:?$1 needs a value}"); shift ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "test.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    esac
    shift
done

started=$SECONDS
setup_packages tests
setup_cuda "$cuda"
setup_say "Configure"
setup_configure -DKILN_TESTS=ON -DKILN_WERROR=ON "-DKILN_CUDA=$require"
setup_say "Build"
cmake --build "$SETUP_BUILD" --parallel "$(nproc)"
setup_say "Lint"
lint=0
./scripts/lint.sh || lint=1

setup_say "Test"
built=$SECONDS
# ctest's closing lines stay the last ones: the times are printed above them.
summarise() {
    local line
    while IFS= read -r line; do
        if [[ $line == *"% tests passed, "* ]]; then
            setup_say "$((SECONDS - started)) s in all: set-up, build and lint $((built - started)) s, tests $((SECONDS - built)) s"
            if [[ $lint != 0 ]]; then setup_say "lint FAILED (see above)"; fi
        fi
        printf '%s\n' "$line"
    done
}
tests=0
(cd "$SETUP_BUILD" && ctest --output-on-failure -j "$jobs" "${ctest_arguments[@]}" 2>&1) | summarise || tests=1
exit $((lint | tests))
