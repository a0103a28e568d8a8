#!/usr/bin/env bash
# load.sh: kiln under load beside its peers, as tables with the aim of each row.
#
#   ./bench/load.sh [--kilnd PATH] [--bench PATH] [--device cpu|cuda:0,…] [--no-peers] [--quick]
#                   [--only NAME] [--leak COUNT] [--output FOLDER]
#
# Starts kilnd on loopback, measures it with kiln-bench, stops it; the same for a service of aiohttp,
# CuPy or NumPy, and Pillow, and for nginx with a static file. Needs python3 and nothing else; what a
# peer lacks is named. PYTHON names the interpreter that has the peers.
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "${BASH_SOURCE[0]}")/load.py" "$@"
