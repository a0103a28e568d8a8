#!/usr/bin/env bash
# fuzz.sh: searches for inputs that break a parser, with libFuzzer under ASan and UBSan. Needs clang.
#
#   ./scripts/fuzz.sh [SECONDS] [TARGET…]     60 s for each of tests/fuzz/fuzz_*.c
#   NIGHTLY=1 ./scripts/fuzz.sh               an hour for each
#
# Starts from tests/fuzz/corpus/ and keeps what it finds new in build-fuzz/corpus/. An input that
# breaks a parser is written to build-fuzz/found/: add it to the corpus, which CI replays, with
# the repair.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=60
if [[ ${NIGHTLY:-} == 1 ]]; then seconds=3600; fi
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
fi
clang=$(command -v clang || true)
if [[ -z $clang ]]; then
    echo "fuzz.sh: clang is not installed (apt-get install clang)" >&2
    exit 77
fi
targets=("$@")
if [[ ${#targets[@]} == 0 ]]; then
    for source in tests/fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
fi

# The kernels' inner files speak GCC's vectors and see no foreign bytes: they stay as they are.
cmake -S . -B build-fuzz -G Ninja -DKILN_CUDA=OFF >/dev/null
cmake --build build-fuzz --parallel "$(nproc)" --target kiln_cpu | tail -n 1
flags=(-std=c11 -g -O1 -D_GNU_SOURCE -I. -fsanitize=address,undefined -fno-sanitize-recover=undefined)
mkdir -p build-fuzz/objects
for source in compute/*/*.c compute/*/*/*.c; do
    object=build-fuzz/objects/${source//\//_}.o
    if [[ ! -f $object || -n $(find compute kernels -name '*.[ch]' -newer "$object" -print -quit) ]]; then
        printf '%s -o%s\n' "$source" "$object"
    fi
done | xargs -r -n 2 -P "$(nproc)" "$clang" "${flags[@]}" -fsanitize=fuzzer-no-link -c
for target in "${targets[@]}"; do
    more=()
    case $target in # parsers of the front, as in tests/CMakeLists.txt
    fuzz_accept) more=(server/jobs/negotiate.c) ;;
    fuzz_etag) more=(server/cache/etag.c server/cache/result.c -DKILN_VERSION='"fuzz"' -lxxhash) ;;
    fuzz_keys) more=(server/auth/keys.c) ;;
    fuzz_kept_headers) more=(server/api/kept_headers.c) ;;
    fuzz_origin) more=(server/http/origin.c) ;;
    fuzz_url) more=(server/http/request/url.c) ;;
    fuzz_wire) more=(server/http/wire/wire.c server/http/wire/head.c) ;;
    esac
    "$clang" "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/$target.c" "${more[@]}" build-fuzz/objects/*.o \
        "$(find build-fuzz/kernels -name libkiln_cpu.a)" -lpng -ldeflate -lsqlite3 -lgnutls -lpthread -ldl -lm \
        -o "build-fuzz/$target"
done
mkdir -p build-fuzz/found
failed=0
for target in "${targets[@]}"; do
    mkdir -p "build-fuzz/corpus/$target"
    log=build-fuzz/$target.log
    found=0
    words=()
    if [[ -f tests/fuzz/$target.dict ]]; then words=("-dict=tests/fuzz/$target.dict"); fi
    if ! "build-fuzz/$target" "${words[@]}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="build-fuzz/found/$target-" \
        "build-fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
        failed=1 found=1
        tail -n 40 "$log"
    fi
    printf '%-18s %12s inputs, %s\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1)"
    if [[ -n ${KILN_SOAK:-} ]]; then # for tests/soak/run.sh
        echo "acceptance: libFuzzer per parser | $target, $seconds s:" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, $found broke it | nothing found |" \
            "$([[ $found == 0 ]] && echo yes || echo NO)"
    fi
done
exit $failed
