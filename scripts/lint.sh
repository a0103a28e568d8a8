#!/usr/bin/env bash
# lint.sh: layout and grammar of everything that no compiler sees. Changes nothing.
#
#   ./scripts/lint.sh          checks
#   ./scripts/lint.sh --fix    lays the C sources out anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failures=0
check() {
    local name=$1
    shift
    if "$@"; then
        printf 'lint: %-14s ok\n' "$name"
    else
        printf 'lint: %-14s FAILED\n' "$name"
        failures=$((failures + 1))
    fi
}

# Files of these patterns, tracked or new, without what git ignores.
sources() {
    git ls-files -z --cached --others --exclude-standard -- "$@" |
        while IFS= read -r -d '' file; do
            if [[ -f $file ]]; then printf '%s\0' "$file"; fi
        done
}

# Version 14 on every machine: versions disagree about layout.
clang_format=$(command -v clang-format-14 || command -v clang-format || true)

c_layout() {
    [[ -n $clang_format ]] || { echo "lint: clang-format-14 is not installed"; return 1; }
    sources '*.c' '*.h' | xargs -0 "$clang_format" --dry-run -Werror
}

python_syntax() {
    sources '*.py' | xargs -0 python3 -c '
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        compile(file.read(), path, "exec")'
}

shell_syntax() {
    local file
    for file in scripts/*.sh .ci/run; do
        bash -n "$file" || return 1
        [[ -x $file ]] || { echo "lint: $file is not executable"; return 1; }
    done
}

openapi() {
    python3 tests/oracle/openapi.py api/openapi.yaml
}

if [[ ${1:-} == --fix ]]; then
    sources '*.c' '*.h' | xargs -0 "$clang_format" -i
    exit 0
fi
check c-layout c_layout
check python-syntax python_syntax
check shell-syntax shell_syntax
check openapi openapi
exit $((failures > 0))
