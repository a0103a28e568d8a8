#!/usr/bin/env bash
# hardening.sh: reads from finished programs (ELF and DWARF) that no protection was lost on the way.
#
#   tests/hardening.sh PROGRAM…      exit code 0: everything is there; 77: nothing to read with
#
# What the linker does is read from the headers, what the compiler does from the names that the code
# calls and, for protections without a name, from the flags that it notes beside every source.
set -euo pipefail
command -v readelf >/dev/null || { echo "readelf is not installed: skipped"; exit 77; }

failures=0
# check WHAT OUTPUT PATTERN: the pattern must be in the output; with a leading ! it must not.
check() {
    local found=yes wanted=yes pattern=$3
    if [[ $pattern == !* ]]; then wanted=no pattern=${pattern#!}; fi
    grep -aqE -e "$pattern" <<<"$2" || found=no
    if [[ $found == "$wanted" ]]; then
        printf '  ok      %s\n' "$1"
    else
        printf '  LOST    %s\n' "$1"
        failures=$((failures + 1))
    fi
}

# every SOURCE-FLAG: how many compiled C sources lack it.
every() {
    local lacking
    lacking=$(grep -avcE -e "$2( |$)" <<<"$producers" || true)
    if [[ -n $producers && $lacking == 0 ]]; then
        printf '  ok      %s (%d sources)\n' "$1" "$(wc -l <<<"$producers")"
    else
        printf '  LOST    %s (%s sources without)\n' "$1" "$lacking"
        failures=$((failures + 1))
    fi
}

for program in "$@"; do
    printf '%s\n' "$program"
    header=$(readelf -hW "$program")
    segments=$(readelf -lW "$program")
    dynamic=$(readelf -dW "$program")
    names=$(readelf -W --dyn-syms "$program")
    producers=$(readelf -W --debug-dump=info "$program" 2>/dev/null |
        grep -a 'DW_AT_producer.*GNU C[0-9]' || true)
    check "position-independent" "$header" 'Type: +DYN'
    if [[ $segments == *INTERP* ]]; then
        check "position-independent program" "$dynamic" 'FLAGS_1.* PIE'
    fi
    check "tables read-only after the start (relro)" "$segments" 'GNU_RELRO'
    check "all names bound at the start (now)" "$dynamic" 'BIND_NOW|FLAGS_1.* NOW'
    check "stack not executable" "$segments" 'GNU_STACK +.* RW +0x'
    check "nothing both writable and executable" "$segments" '! RWE '
    check "no text relocations" "$dynamic" '!TEXTREL'
    check "stack protector" "$names" '__stack_chk_fail'
    check "fortified library calls" "$names" '__(snprintf|memcpy|vsnprintf)_chk'
    every "stack protector everywhere" '-fstack-protector-strong'
    every "stack clash protection everywhere" '-fstack-clash-protection'
    if [[ $header == *X86-64* ]]; then
        every "control-flow protection everywhere" '-fcf-protection=full'
    fi
done
exit $((failures > 0))
