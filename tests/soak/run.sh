#!/usr/bin/env bash
# run.sh: the long forms of tests that ctest runs shortly, one after the other, until one fails.
#
#   tests/soak/run.sh [BUILD]      the build folder; build/ by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build}
export KILN_SOAK=1
ctest --test-dir "$build" --output-on-failure -V -R 'api\.api_(devices|faults|framing|hostile|overload)|unit\.driver_faults'
