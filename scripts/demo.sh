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

# --device cpu: nothing is compiled for other devices, and no toolkit is looked for or fetched.
target=kiln
[[ $device =~ ^cpu(:0)?$ && $cuda == auto ]] && target=kilnd

setup_packages
if [[ $target == kiln ]]; then setup_cuda "$cuda"; fi
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
cmake --build "$SETUP_BUILD" --target "$target" --parallel "$(nproc)"

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
    --deadline 300 >"$scratch/log" 2>&1 &
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

# compare ORIGINAL RECONSTRUCTION: two PGM or PPM files of the same shape.
compare() {
    { cmp -l "$1" "$2" || true; } | awk -v samples="$(($(wc -c <"$1") - $(head -3 "$1" | wc -c)))" '
        function octal(text,    value, i) {
            for (i = 1; i <= length(text); i++) value = 8 * value + substr(text, i, 1)
            return value
        }
        { d = octal($2) - octal($3); if (d < 0) d = -d; if (d > most) most = d; count++ }
        END {
            if (count) printf "      %d of %d samples differ from the original, by at most %d of 255\n", count, samples, most
            else printf "      all %d samples are those of the original\n", samples
        }'
}

# laplacian PICTURE LAPLACIAN: as kiln reads it back, which is grey to the eye (a few hundred of
# 65536 levels), and beside it a copy to be looked at, stretched 250 times.
laplacian() {
    local name
    name=$(basename "$1" .png)
    job "laplacian of $name" "$2" \
        --data-binary "@$1" -H 'Content-Type: image/png' -H 'Accept: image/png' "$base/v1/laplacian"
    job "the same, stretched" "${2%.png}-stretched.png" \
        --data-binary "@$1" -H 'Content-Type: image/png' -H 'Accept: image/png' \
        "$base/v1/laplacian?scale=0.004"
}

# reconstruct PICTURE LAPLACIAN RECONSTRUCTION [SWEEPS]: back to the picture, at once or by sweeps.
reconstruct() {
    local name
    name=$(basename "$1" .png)
    job "jacobi of $name${4:+, $4 sweeps}" "$3" \
        --data-binary "@$2" -H 'Content-Type: image/png' -H 'Accept: image/png' \
        "$base/v1/jacobi${4:+?iterations=$4}"
    # No sweeps at all: the same picture as PGM, whose bytes can be compared.
    curl -fsS -o "$scratch/original.pgm" --data-binary "@$1" -H 'Content-Type: image/png' \
        "$base/v1/jacobi?iterations=0&format=pgm"
    curl -fsS -o "$scratch/again.pgm" --data-binary "@$3" -H 'Content-Type: image/png' \
        "$base/v1/jacobi?iterations=0&format=pgm"
    compare "$scratch/original.pgm" "$scratch/again.pgm"
}

setup_say "Mandelbrot, 1500x1250, 400 iterations"
job "mandelbrot" "$out/mandelbrot.png" -H 'Accept: image/png' "$base/v1/mandelbrot"
job "mandelbrot, shaded" "$out/mandelbrot-shaded.png" -H 'Accept: image/png' \
    "$base/v1/mandelbrot?shade=true&colormap=hot"

setup_say "A picture from its Laplacian"
job "picture, 400x266" "$out/picture.png" -H 'Accept: image/png' \
    "$base/v1/mandelbrot?width=400&height=266&xmin=-2.2&xmax=0.8&ymin=-0.9975&ymax=0.9975&colormap=inferno&supersample=3"
laplacian "$out/picture.png" "$out/laplacian.png"
reconstruct "$out/picture.png" "$out/laplacian.png" "$out/reconstruction.png"
reconstruct "$out/picture.png" "$out/laplacian.png" "$out/reconstruction-sweeps.png" 150000
if [[ -f ../shared/data/camera.png ]]; then
    laplacian ../shared/data/camera.png "$out/camera-laplacian.png"
    reconstruct ../shared/data/camera.png "$out/camera-laplacian.png" "$out/camera-reconstruction.png"
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
            printf "%.6f,%.6f,0.3\n", t, 10 + sin(6.283185307179586 * t / 7.3) + noise
        }
    }' >"$curve"
fi
for format in png json; do
    job "lombscargle, $format" "$out/periodogram.$format" \
        --data-binary "@$curve" -H 'Content-Type: text/csv' "$base/v1/lombscargle?$range&format=$format"
done
tr ',' '\n' <"$out/periodogram.json" | sed -n 's/^"best_period": *//p' |
    awk '{ printf "      strongest period: %.4f\n", $1 }'

# One device a line in /v1/devices: "cpu:0 (AMD EPYC)".
devices=$(curl -fsS "$base/v1/devices" |
    sed -n 's/.*"name":"\([a-z]*:[0-9]*\)","state":"ready".*"description":{"name":"\([^"]*\)".*/\1 (\2)/p' |
    paste -s -d, - | sed 's/,/, /g')
setup_say "Phases in milliseconds on $devices"
printf '%-34s %-8s %8s %8s %10s %8s %8s %10s\n' job device queue upload kernel download encode total
cat "$scratch/rows"

if [[ $stay == yes ]]; then
    setup_say "kilnd serves on $base until Ctrl-C. Try, in another terminal:"
    cat <<LINES
      curl $base/v1/devices
      curl -o seahorse.png '$base/v1/mandelbrot?xmin=-0.76&xmax=-0.73&ymin=0.09&ymax=0.115&max_iter=2000&vmax=400&colormap=twilight_shifted'
      curl -o counts.npy '$base/v1/mandelbrot?field=count&format=npy'
      curl -o laplacian.png -H 'Accept: image/png' -H 'Content-Type: image/png' --data-binary @demo/picture.png $base/v1/laplacian
      curl -o again.png -H 'Content-Type: image/png' --data-binary @laplacian.png $base/v1/jacobi
      curl -H 'Content-Type: text/csv' --data-binary @$curve '$base/v1/lombscargle?fields=peaks&$range'
LINES
    wait "$daemon" || true
fi
