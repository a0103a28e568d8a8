#!/usr/bin/env bash
# setup.sh: what a machine needs before kiln can be built. Says first what it will install and why,
# installs only what is missing, and does nothing at all (no network) when nothing is.
#
#   ./scripts/setup.sh [--tests] [--with-cuda]
#
# Other scripts source it and call:
#   setup_packages [tests]     Debian or Ubuntu packages
#   setup_cuda auto|wheels     finds a CUDA toolkit; `wheels` fetches one into build/cuda-venv if
#                              there is none. Sets SETUP_CUDA_HOME ("" where there is none).
#   setup_configure ARGUMENT…  runs CMake on the build folder (build/, or $KILN_BUILD)

SETUP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SETUP_BUILD=${KILN_BUILD:-$SETUP_ROOT/build}
SETUP_CUDA_HOME=""

# package, why (one row each)
SETUP_BUILD_PACKAGES="
gcc                     the C compiler
g++                     the host compiler that nvcc calls, and nothing else
libc6-dev               the C library's headers
cmake                   configures the build
ninja-build             runs the build
pkg-config              finds the libraries below
libmicrohttpd-dev       the HTTP library
libgnutls28-dev         hashes keys, and TLS below it
libpng-dev              reads PNG
libdeflate-dev          compresses PNG
libsqlite3-dev          keeps jobs
libxxhash-dev           hashes inputs for ETags
curl                    speaks to the daemon in the demo"
SETUP_TEST_PACKAGES="
libcmocka-dev           unit tests
libcurl4-openssl-dev    API tests
libcjson-dev            reads the daemon's JSON in API tests
python3                 the oracles' language
python3-numpy           oracle for Jacobi, Laplacian and Mandelbrot
python3-scipy           oracle for Lomb-Scargle and sine transforms
python3-astropy         oracle for Lomb-Scargle
python3-mpmath          oracle for Lomb-Scargle where doubles do not reach, in 60 digits
python3-matplotlib      oracle for colours and shading
python3-pil             oracle for PNG
python3-yaml            reads api/openapi.yaml
python3-jsonschema      checks its examples
python3-venv            a private place for schemathesis
git                     lists the sources for scripts/lint.sh"
# Installed where the distribution has it; what uses it is skipped, and says so, where it is not.
SETUP_LINT_PACKAGES="
clang-format-14         checks the layout of the sources
libclang1-14            tells scripts/style.py which expressions are pointers"

setup_say() {
    printf '==> %s\n' "$*"
}

setup_fail() {
    printf 'setup: %s\n' "$*" >&2
    return 1
}

setup_installed() {
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# setup_install PACKAGE…: through apt-get, as root or with sudo.
setup_install() {
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || {
            setup_fail "not root and no sudo; have these packages installed and run again: $*"
            return 1
        }
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update ||
        setup_say "apt-get update failed; trying with the package lists that are here"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install "$@"
}

# setup_need ROWS: installs what is missing of a table of packages.
setup_need() {
    local package why missing=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        setup_say "Not a Debian system: nothing is installed. kiln needs what these packages hold:"
        printf '%s\n' "$1" | sed '/^$/d; s/^/      /'
        return 0
    fi
    while read -r package why; do
        [[ -n $package ]] && ! setup_installed "$package" && missing+=("$package")
    done <<<"$1"
    [[ ${#missing[@]} == 0 ]] && return 0
    setup_say "Missing packages, about to be installed with apt-get:"
    while read -r package why; do
        [[ " ${missing[*]} " == *" $package "* ]] && printf '      %-24s%s\n' "$package" "$why"
    done <<<"$1"
    setup_install "${missing[@]}"
}

# setup_offered ROWS: the rows whose package this machine's lists have.
setup_offered() {
    local package why
    command -v apt-cache >/dev/null || return 0
    while read -r package why; do
        [[ -z $package ]] && continue
        if setup_installed "$package" || [[ -n $(apt-cache madison "$package" 2>/dev/null) ]]; then
            printf '%-24s%s\n' "$package" "$why"
        fi
    done <<<"$1"
}

setup_packages() {
    local rows=$SETUP_BUILD_PACKAGES
    [[ ${1:-} == tests ]] && rows+=$SETUP_TEST_PACKAGES
    setup_need "$rows" || return 1
    if [[ ${1:-} == tests ]]; then # after the lists are there, which a new machine does not have
        rows=$(setup_offered "$SETUP_LINT_PACKAGES")
        [[ -z $rows ]] || setup_need "$rows" || setup_say "going on without them"
    fi
}

# The folder of a toolkit that is already on the machine, or nothing. The compiler itself says where
# it lives: on the PATH it may be a link or a wrapper.
setup_cuda_find() {
    local nvcc top
    for nvcc in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
        if [[ -z $nvcc || ! -x $nvcc ]]; then continue; fi
        top=$("$nvcc" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p') || true
        if [[ -x $top/bin/nvcc && -f $top/include/cuda_runtime.h ]]; then
            (cd "$top" && pwd)
            return 0
        fi
    done
}

# The folder of the toolkit in the virtual environment, or nothing.
setup_cuda_venv() {
    local nvcc
    for nvcc in "$SETUP_BUILD"/cuda-venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
        if [[ -x $nvcc ]]; then
            dirname "$(dirname "$nvcc")"
            return 0
        fi
    done
}

setup_cuda() {
    SETUP_CUDA_HOME=$(setup_cuda_find)
    [[ -z $SETUP_CUDA_HOME ]] && SETUP_CUDA_HOME=$(setup_cuda_venv)
    if [[ -z $SETUP_CUDA_HOME && $1 == wheels ]]; then
        local venv=$SETUP_BUILD/cuda-venv
        setup_need "python3-venv            a private place for the CUDA compiler" || return 1
        setup_say "No CUDA toolkit here: NVIDIA's compiler wheels go to $venv (about 1.5 GB on disk)"
        python3 -m venv "$venv" || return 1
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            'cuda-toolkit[nvcc,cudart,nvrtc,cufft,cublas,cccl]==13.0.*' || return 1
        SETUP_CUDA_HOME=$(setup_cuda_venv)
        [[ -n $SETUP_CUDA_HOME ]] || { setup_fail "the wheels brought no nvcc"; return 1; }
    fi
    if [[ -n $SETUP_CUDA_HOME ]]; then
        setup_say "CUDA toolkit: $SETUP_CUDA_HOME"
    else
        setup_say "No CUDA toolkit: building without the CUDA backend (--with-cuda fetches a compiler)"
    fi
}

setup_configure() {
    local arguments=(-S "$SETUP_ROOT" -B "$SETUP_BUILD" "$@")
    # The generator of a build folder cannot change; a folder made by hand keeps its own.
    [[ -f $SETUP_BUILD/CMakeCache.txt ]] || arguments+=(-G Ninja)
    [[ -n $SETUP_CUDA_HOME ]] && arguments+=("-DKILN_CUDA_HOME=$SETUP_CUDA_HOME")
    cmake "${arguments[@]}"
}

setup_main() {
    local tests="" cuda=auto
    while [[ $# -gt 0 ]]; do
        case $1 in
        --tests) tests=tests ;;
        --with-cuda) cuda=wheels ;;
        -h | --help)
            sed -n '2,5s/^# \{0,1\}//p' "$0"
            return 0
            ;;
        *) setup_fail "unknown option $1 (try --help)"; return 2 ;;
        esac
        shift
    done
    setup_packages $tests && setup_cuda $cuda && setup_say "Ready to build"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    setup_main "$@"
fi
