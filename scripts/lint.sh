#!/usr/bin/env bash
# lint.sh: layout and grammar of everything that no compiler sees. Changes nothing. A check whose tool is
# not here is skipped and says so.
#
#   ./scripts/lint.sh          checks
#   ./scripts/lint.sh --fix    puts braces and comparisons with NULL in, and lays the C sources out anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failures=0
skip=77
check() {
    local name=$1 code=0
    shift
    "$@" || code=$?
    case $code in
    0) printf 'lint: %-14s ok\n' "$name" ;;
    "$skip") printf 'lint: %-14s skipped\n' "$name" ;;
    *)
        printf 'lint: %-14s FAILED\n' "$name"
        failures=$((failures + 1))
        ;;
    esac
}

# Files of these patterns, tracked or new, without what git ignores.
sources() {
    git ls-files -z --cached --others --exclude-standard -- "$@" |
        while IFS= read -r -d '' file; do
            if [[ -f $file ]]; then printf '%s\0' "$file"; fi
        done
}

# Version 14 on every machine: versions disagree about layout.
clang_format_find() {
    local program
    for program in clang-format-14 clang-format; do
        if [[ $("$program" --version 2>/dev/null) == *"version 14."* ]]; then
            command -v "$program"
            return
        fi
    done
}
clang_format=$(clang_format_find || true)

# needs PROGRAM-PATH WHAT: whether it is here; says so where it is not.
needs() {
    [[ -n $1 ]] || { echo "lint: $2 is not here"; return "$skip"; }
}

c_layout() {
    needs "$clang_format" "clang-format of version 14" || return
    sources '*.c' '*.h' | xargs -0 "$clang_format" --dry-run -Werror
}

# Braces and pointers: what clang-format does not decide (scripts/style.py).
c_style() {
    local files
    mapfile -d '' files < <(sources '*.c' '*.h' '*.cu' '*.cuh')
    python3 scripts/style.py "$@" "${files[@]}"
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
    for file in scripts/*.sh tests/*.sh tests/*/*.sh bench/*.sh .ci/run; do
        bash -n "$file" || return 1
        [[ -x $file ]] || { echo "lint: $file is not executable"; return 1; }
    done
}

openapi() {
    python3 -c 'import yaml, jsonschema' 2>/dev/null || needs "" "PyYAML or jsonschema" || return
    python3 tests/oracle/openapi.py api/openapi.yaml && python3 scripts/openapi.py --check
}

if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "lint: git does not know these sources (an unpacked archive?): all checks skipped"
    exit 0
fi
if [[ ${1:-} == --fix ]]; then
    needs "$clang_format" "clang-format of version 14"
    for _ in 1 2; do # an expression may lie in another
        c_style --fix || [[ $? == "$skip" ]]
    done
    sources '*.c' '*.h' | xargs -0 "$clang_format" -i
    exit 0
fi
check c-layout c_layout
check python-syntax python_syntax
check shell-syntax shell_syntax
check openapi openapi
exit $((failures > 0))
