#!/usr/bin/env bash
# run.sh: kiln and its peers on this machine, as tables of ratios.
#
#   ./bench/run.sh [--device cpu|cuda] [--quick] [--only NAME] [--label TEXT] [--output PATH]
#   ./bench/run.sh --no-install …     builds and installs nothing: KILND=path, python3 as it is
#
# Builds kilnd and the measuring programs unless KILND names one, and keeps the peers in a virtual
# environment, build/bench-venv; each peer is optional. The result goes to bench/results/ as well.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${KILN_BUILD:-$root/build}
venv=$build/bench-venv
peers=(numpy scipy numba astropy finufft nifty-ls pillow opencv-python-headless)

install=yes
for argument in "$@"; do
    case $argument in
    --no-install) install=no ;;
    -h | --help) install=no ;;
    esac
done

# install_peers: all at once, or one by one where that fails. What is missing is named in the result.
install_peers() {
    local peer stamp=$venv/peers
    [[ -f $stamp && $(<"$stamp") == "${peers[*]}" ]] && return 0
    echo "bench: peers go to $venv" >&2
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
    local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
    if ! "${pip[@]}" "${peers[@]}" >&2; then
        for peer in "${peers[@]}"; do
            "${pip[@]}" "$peer" >&2 || echo "bench: $peer could not be installed" >&2
        done
    fi
    echo "${peers[*]}" >"$stamp"
}

python=${PYTHON:-python3}
if [[ $install == yes ]]; then
    if [[ -z ${KILND:-} ]]; then
        echo "bench: building in $build" >&2
        if [[ -f $build/CMakeCache.txt ]]; then
            cmake -S "$root" -B "$build" -DKILN_BENCH=ON >&2
        else
            cmake -S "$root" -B "$build" -G Ninja -DKILN_BENCH=ON >&2
        fi
        cmake --build "$build" --parallel "$(nproc)" >&2
        export KILND=$build/kilnd
    fi
    if [[ -z ${PYTHON:-} ]]; then
        if install_peers; then
            python=$venv/bin/python
        else
            echo "bench: no virtual environment (python3-venv?); using python3 as it is" >&2
        fi
    fi
fi
# Threads that wait for work must not take cores from whoever is measured next.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
exec "$python" "$root/bench/run.py" "$@"
