#!/usr/bin/env bash
# install.sh: `cmake --install` brings everything that the units and the manual name, and what it brings
# runs. Installs into folders of its own.
#
#   tests/install.sh BUILD
set -euo pipefail
build=${1:?the build folder}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# check ROOT PREFIX ETC: the installation under ROOT (empty or DESTDIR).
check() {
    local root=$1 prefix=$2 etc=$3 unit path
    "$root$prefix/bin/kilnd" version >/dev/null || fail "kilnd does not run"
    for path in LICENSE NOTICE README.md SECURITY.md operations.md api.md openapi.yaml keys.conf kiln.conf; do
        [[ -s $root$prefix/share/doc/kiln/$path ]] || fail "$path is not in the manual's folder"
    done
    [[ ! -e $build/kiln_cuda.so || -s $root$prefix/lib/kiln/kiln_cuda.so ]] || fail "the CUDA module is missing"
    for unit in kilnd.service kilnd.socket; do
        unit=$root$prefix/lib/systemd/system/$unit
        [[ -s $unit ]] || fail "$unit is missing"
        # every path that it names is there, but those that are the machine's own
        grep -Eo '(/[A-Za-z0-9._-]+)+' <<<"$(grep -Ev '^#|^ListenStream' "$unit" | sed 's#file://##')" |
            grep -E "^($prefix|$etc|/usr|/etc)/" | while read -r path; do
            [[ -e $root$path ]] || fail "$unit names $path, which is not installed"
        done
    done
    "$root$prefix/bin/kilnd" --check-config --config "$root$etc/kiln.conf" >/dev/null ||
        fail "the configuration that comes with it is refused"
}

DESTDIR=$scratch/root cmake --install "$build" --prefix /usr >/dev/null
check "$scratch/root" /usr /etc
echo '# mine' >"$scratch/root/etc/kiln.conf"
DESTDIR=$scratch/root cmake --install "$build" --prefix /usr >/dev/null
[[ $(<"$scratch/root/etc/kiln.conf") == '# mine' ]] || fail "a configuration was overwritten"
cmake --install "$build" --prefix "$scratch/own" >/dev/null
check "" "$scratch/own" "$scratch/own/etc"
if command -v systemd-analyze >/dev/null; then
    # Files of units only: no manager is asked.
    systemd-analyze verify --man=no "$scratch/own/lib/systemd/system/kilnd.service" >"$scratch/verify" 2>&1 ||
        fail "$(<"$scratch/verify")"
    if grep -q 'kilnd\.\(service\|socket\)' "$scratch/verify"; then fail "$(<"$scratch/verify")"; fi
    cp "$scratch/own/lib/systemd/system/kilnd.service" "$scratch/keyed.service"
    grep -v '^\[Service\]\|^#' "$scratch/own/share/doc/kiln/keys.conf" |
        sed -i '/^ExecReload/r /dev/stdin' "$scratch/keyed.service"
    systemd-analyze verify --man=no "$scratch/keyed.service" >"$scratch/verify" 2>&1 || fail "$(<"$scratch/verify")"
    if grep -q 'keyed.service' "$scratch/verify"; then fail "$(<"$scratch/verify")"; fi
fi
echo "installed: what the units and the manual name is there"
