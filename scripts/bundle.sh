#!/usr/bin/env bash
# Makes a bundle of kiln that runs on a machine with only a C library (and, for a GPU, the driver):
#
#   scripts/bundle.sh [--build DIR] [--dir DIR | --output FILE] [--tests]
#
#   --build DIR    the build to take it from (default build)
#   --dir DIR      write a folder instead of dist/kiln-<version>-<machine>.tar.gz
#   --output FILE  write the archive there
#   --tests        add the kernel and API tests with tests/run.sh that runs them, and the load
#                  generator with bench/load.sh
#
# bin/kilnd, lib/*.so (what kilnd links beyond the C library), lib/kiln/kiln_cuda.so, licenses.
# Programs find lib/ by the path stored in them ($ORIGIN/../lib); one that was linked without it gets
# a wrapper that sets LD_LIBRARY_PATH.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
dir=
output=
tests=no

die() {
    echo "bundle.sh: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build needs a folder}; shift ;;
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --output) output=${2:?--output needs a file}; shift ;;
    --tests) tests=yes ;;
    -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) die "unknown option $1 (see --help)" ;;
    esac
    shift
done

[ -x "$build/kilnd" ] || die "$build/kilnd is missing: build first"
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
[ -n "$version" ] || die "no version in CMakeLists.txt"
name=kiln-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/$name
mkdir -p "$bundle/bin" "$bundle/lib/kiln" "$bundle/licenses"

# Shared libraries of a file, one path a line; fails where one is not found.
libraries_of() {
    local list
    list=$(ldd "$1") || die "ldd cannot read $1"
    if grep -q 'not found' <<<"$list"; then
        die "$1 lacks $(awk '/not found/ {print $1; exit}' <<<"$list")"
    fi
    awk '$2 == "=>" && $3 ~ /^\// {print $3}' <<<"$list"
}

# The C library's own parts belong to the machine, not to the bundle.
is_system() {
    case $(basename "$1") in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | \
        libutil.so.* | libnsl.so.* | libanl.so.* | libnss_* | ld-linux*) return 0 ;;
    *) return 1 ;;
    esac
}

# Debian keeps each package's licence in its documentation.
license_add() {
    local package path=$1
    package=$(dpkg -S "$path" 2>/dev/null || dpkg -S "/usr$path" 2>/dev/null ||
        dpkg -S "${path#/usr}" 2>/dev/null || dpkg -S "$(readlink -f "$path")" 2>/dev/null || true)
    package=$(head -n 1 <<<"$package")
    package=${package%%:*}
    if [ -n "$package" ] && [ -r "/usr/share/doc/$package/copyright" ]; then
        cp -L "/usr/share/doc/$package/copyright" "$bundle/licenses/$package"
    else
        echo "bundle.sh: no licence text found for $path" >&2
    fi
}

libraries_add() {
    local library
    while read -r library; do
        if is_system "$library" || [ -e "$bundle/lib/$(basename "$library")" ]; then
            continue
        fi
        cp -L "$library" "$bundle/lib/$(basename "$library")"
        chmod 644 "$bundle/lib/$(basename "$library")"
        license_add "$library"
    done < <(libraries_of "$1")
}

has_origin() {
    grep -Eq '\(RPATH\).*\$ORIGIN/\.\./lib' <<<"$(readelf -d "$1")"
}

# A program into a folder beside lib/.
program_add() {
    local source=$1 folder=$2 base
    base=$(basename "$source")
    mkdir -p "$bundle/$folder"
    libraries_add "$source"
    if has_origin "$source"; then
        strip -g -o "$bundle/$folder/$base" "$source"
        return
    fi
    strip -g -o "$bundle/$folder/.$base" "$source"
    cat >"$bundle/$folder/$base" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/.$(basename "$0")" "$@"
WRAPPER
    chmod 755 "$bundle/$folder/$base"
}

# Every program must start with the bundle's libraries alone.
program_check() {
    local program=$1 lines line
    [ -e "$(dirname "$program")/.$(basename "$program")" ] &&
        program=$(dirname "$program")/.$(basename "$program")
    lines=$(LD_LIBRARY_PATH=$bundle/lib ldd "$program")
    has_origin "$program" && lines=$(env -u LD_LIBRARY_PATH ldd "$program")
    while read -r line; do
        is_system "$line" || case $(readlink -f "$line") in
        "$(readlink -f "$bundle")"/*) ;;
        *) die "$(basename "$program") would take $line from the machine" ;;
        esac
    done < <(awk '$2 == "=>" {print $3 == "not" ? $1 : $3}' <<<"$lines")
}

program_add "$build/kilnd" bin
if [ -e "$build/kiln_cuda.so" ]; then
    strip -g -o "$bundle/lib/kiln/kiln_cuda.so" "$build/kiln_cuda.so"
    chmod 644 "$bundle/lib/kiln/kiln_cuda.so"
    while read -r library; do
        is_system "$library" || die "kiln_cuda.so must need the C library only, not $library"
    done < <(libraries_of "$build/kiln_cuda.so")
else
    echo "bundle.sh: no kiln_cuda.so in $build: this bundle runs on the CPU only" >&2
fi

if [ "$tests" = yes ]; then
    [ -x "$build/kernelcheck" ] || die "$build/kernelcheck is missing: build the tests first"
    program_add "$build/kernelcheck" tests
    for program in "$build"/api_*; do
        [ -x "$program" ] || die "there are no API tests in $build: build the tests first"
        program_add "$program" tests
    done
    if [ -x "$build/kilnd-faults" ]; then
        program_add "$build/kilnd-faults" tests
        mkdir -p "$bundle/lib/standin"
        strip -g -o "$bundle/lib/standin/kiln_cuda.so" "$build/standin/kiln_cuda.so"
    fi
    program_add "$build/kiln-bench" bin
    mkdir -p "$bundle/bench"
    cp -R "$root"/bench/{load.sh,load.py,services.py,peer_service.py,mandelbrot.py,clock.py,table.py,scenarios} \
        "$bundle/bench/"
    cat >"$bundle/tests/run.sh" <<'RUN'
#!/bin/sh
# Runs the bundle's tests: tests/run.sh [cpu|cuda:0 … [SUITE]], with SUITE such as `devices` that one
# of the API's only. KILN_SOAK=1: long forms. Exit code 0 when all passed or skipped (77).
here=$(cd "$(dirname "$0")" && pwd)
device=${1:-cpu}
failed=0
run() {
    echo "== $*"
    "$@"
    code=$?
    if [ $code -eq 77 ]; then
        echo "   skipped"
    elif [ $code -ne 0 ]; then
        echo "   FAILED ($code)"
        failed=$((failed + 1))
    fi
}
[ -n "${2:-}" ] || run "$here/kernelcheck" --backend "${device%%:*}" --require
KILND=$here/../bin/kilnd
KILND_FAULTS=$here/kilnd-faults
KILN_STANDIN=$here/../lib/standin
KILN_TEST_DEVICE=$device
export KILND KILND_FAULTS KILN_STANDIN KILN_TEST_DEVICE
for program in "$here"/api_${2:-*}; do
    [ -x "$program" ] && run "$program"
done
echo "$failed failed"
[ $failed -eq 0 ]
RUN
    chmod 755 "$bundle/tests/run.sh"
fi

cp "$root/LICENSE" "$root/NOTICE" "$bundle/"
for program in "$bundle"/bin/* "$bundle"/tests/*; do
    case $program in
    *.sh | *'*') ;;
    *) program_check "$program" ;;
    esac
done

size=$(du -sk "$bundle" | cut -f 1)
[ "$size" -le 40960 ] || die "the bundle is too large: $size KiB"
if [ -n "$dir" ]; then
    mkdir -p "$dir"
    cp -a "$bundle/." "$dir/"
    echo "$dir: $size KiB"
else
    output=${output:-$root/dist/$name.tar.gz}
    mkdir -p "$(dirname "$output")"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)" -cf - "$name" |
        gzip -n9 >"$output"
    echo "$output: $(du -k "$output" | cut -f 1) KiB"
fi
