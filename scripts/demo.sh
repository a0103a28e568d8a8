#!/usr/bin/env bash
# demo.sh: from a fresh clone to pictures, a reconstruction and a periodogram, with nothing but curl.
#
#   ./scripts/demo.sh [--stay] [--with-cuda] [--device DEVICE]
#
#   --stay       keep the daemon serving on 127.0.0.1:8080 afterwards, until Ctrl-C
#   --with-cuda  fetch a CUDA compiler where there is none (NVIDIA's wheels, into build/)
#   --device     auto (default: the best there is), cpu, cuda:0, …
#
# Results are written to demo/; every job's phases are printed at the end.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh

stay=no cuda=auto device=auto
while [[ $# -gt 0 ]]; do
    case $1 in
    --stay) stay=yes ;;
    --with-cuda) cuda=wheels ;;
    --device) device=${2:?--device needs a name}; shift ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "demo.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    esac
    shift
done

setup_packages
setup_cuda "$cuda"
setup_say "Configure and build"
configuration=()
# A folder that was configured for the tests stays so.
[[ -f $SETUP_BUILD/CMakeCache.txt ]] || configuration+=(-DKILN_TESTS=OFF)
[[ $cuda == wheels ]] && configuration+=(-DKILN_CUDA=ON)
setup_configure "${configuration[@]}" >"/tmp/kiln-configure.$$" 2>&1 || {
    cat "/tmp/kiln-configure.$$"
    exit 1
}
rm -f "/tmp/kiln-configure.$$"
cmake --build "$SETUP_BUILD" --target kilnd --parallel "$(nproc)"

out=demo
mkdir -p "$out"
scratch=$(mktemp -d)
daemon=""

cleanup() {
    if [[ -n $daemon ]] && kill -0 "$daemon" 2>/dev/null; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

port=0
[[ $stay == yes ]] && port=8080
setup_say "Start kilnd"
"$SETUP_BUILD/kilnd" --listen "127.0.0.1:$port" --port-file "$scratch/port" --device "$device" \
    --deadline 300 2>"$scratch/log" &
daemon=$!

base=""
for ((tick = 0; tick < 600; tick++)); do
    if ! kill -0 "$daemon" 2>/dev/null; then
        cat "$scratch/log" >&2
        echo "demo: kilnd ended before it was ready" >&2
        exit 1
    fi
    if [[ -z $base && -s $scratch/port ]]; then base=http://127.0.0.1:$(<"$scratch/port"); fi
    if [[ -n $base ]] && curl -fs -o "$scratch/ready" "$base/readyz"; then break; fi
    sleep 0.1
done
if ! curl -fsS -o /dev/null "$base/readyz"; then
    cat "$scratch/log" >&2
    echo "demo: no device became ready within a minute" >&2
    exit 1
fi

# job LABEL FILE CURL-ARGUMENT…: runs one job and keeps a row of its phases for the table.
job() {
    local label=$1 file=$2 code
    shift 2
    code=$(curl -sS -D "$scratch/headers" -o "$file" -w '%{http_code}' "$@")
    if [[ $code != 200 ]]; then
        echo "demo: $label: HTTP $code" >&2
        cat "$file" >&2
        rm -f "$file"
        exit 1
    fi
    tr -d '\r' <"$scratch/headers" | awk -v label="$label" '
        tolower($1) == "kiln-device:" { device = $2 }
        tolower($1) == "server-timing:" {
            sub(/^[^:]*:/, "")
            n = split($0, part, ",")
            for (i = 1; i <= n; i++) {
                name = part[i]; gsub(/[ \t]|;.*/, "", name)
                if (match(part[i], /dur=[0-9.eE+-]+/))
                    ms[name] = substr(part[i], RSTART + 4, RLENGTH - 4)
            }
        }
        END {
            printf "%-34s %-8s %8.2f %8.2f %10.2f %8.2f %8.2f %10.2f\n", label, device,
                ms["queue"], ms["upload"], ms["kernel"], ms["download"], ms["encode"], ms["total"]
        }' >>"$scratch/rows"
    printf '      %-34s %s\n' "$label" "$file"
}

# compare PICTURE RECONSTRUCTION: greatest difference of two PGM or PPM files of the same shape.
compare() {
    cmp -l "$1" "$2" | awk -v pixels="$3" '
        function octal(text,    value, i) {
            value = 0
            for (i = 1; i <= length(text); i++) value = 8 * value + substr(text, i, 1)
            return value
        }
        { d = octal($2) - octal($3); if (d < 0) d = -d; if (d > most) most = d; count++ }
        END { printf "      greatest difference from the original %d of 255, in %d of %d samples differing\n", most, count, pixels }' || true
}

# reconstruct NAME PICTURE: picture, its Laplacian, and back by 150 000 Jacobi sweeps.
reconstruct() {
    local name=$1 picture=$2
    job "laplacian of $name" "$out/$name-laplacian.png" \
        --data-binary "@$picture" -H 'Content-Type: image/png' -H 'Accept: image/png' "$base/v1/laplacian"
    job "jacobi, 150000 sweeps, $name" "$out/$name-reconstruction.png" \
        --data-binary "@$out/$name-laplacian.png" -H 'Content-Type: image/png' -H 'Accept: image/png' \
        "$base/v1/jacobi?iterations=150000&offset=32768"
    # No sweeps at all: the same picture as PGM, whose bytes can be compared.
    curl -fsS -o "$scratch/original.pgm" --data-binary "@$picture" -H 'Content-Type: image/png' \
        "$base/v1/jacobi?iterations=0&format=pgm"
    curl -fsS -o "$scratch/again.pgm" --data-binary "@$out/$name-reconstruction.png" -H 'Content-Type: image/png' \
        "$base/v1/jacobi?iterations=0&format=pgm"
    compare "$scratch/original.pgm" "$scratch/again.pgm" "$(($(wc -c <"$scratch/original.pgm") - 15))"
}

setup_say "Mandelbrot, 1500x1250, 400 iterations"
job "mandelbrot" "$out/mandelbrot.png" -H 'Accept: image/png' "$base/v1/mandelbrot"
job "mandelbrot, shaded" "$out/mandelbrot-shaded.png" -H 'Accept: image/png' \
    "$base/v1/mandelbrot?shade=true&colormap=hot"

setup_say "A picture from its Laplacian"
job "picture, 400x266" "$out/picture.png" -H 'Accept: image/png' \
    "$base/v1/mandelbrot?width=400&height=266&xmin=-2.2&xmax=0.8&ymin=-0.9975&ymax=0.9975&colormap=inferno&supersample=3"
reconstruct picture "$out/picture.png"
if [[ -f ../shared/data/camera.png ]]; then
    reconstruct camera ../shared/data/camera.png
fi

setup_say "Periodogram"
curve=../shared/data/sunspots.csv
range="minimum_frequency=0.02&maximum_frequency=0.2"
if [[ ! -f $curve ]]; then
    # 400 uneven times over 200 days, a period of 7.3 days, noise of its own generator.
    curve=$out/light-curve.csv
    range="maximum_frequency=1"
    awk 'BEGIN {
        seed = 42
        print "t,y,dy"
        for (i = 0; i < 400; i++) {
            seed = (seed * 16807) % 2147483647; t = 200 * seed / 2147483647
            seed = (seed * 16807) % 2147483647; noise = seed / 2147483647 - 0.5
            printf "%.6f,%.6f,0.3\n", t, 10 + sin(6.283185307179586 * t / 7.3) + noise, 0.3
        }
    }' >"$curve"
fi
for format in png json; do
    job "lombscargle, $format" "$out/periodogram.$format" \
        --data-binary "@$curve" -H 'Content-Type: text/csv' "$base/v1/lombscargle?$range&format=$format"
done
tr ',' '\n' <"$out/periodogram.json" | sed -n 's/^"best_period": *\([^}]*\).*/      strongest period: \1/p'

setup_say "Phases in milliseconds, on $(awk '{ print $0 }' <(device_names))"
printf '%-34s %-8s %8s %8s %10s %8s %8s %10s\n' job device queue upload kernel download encode total
cat "$scratch/rows"
