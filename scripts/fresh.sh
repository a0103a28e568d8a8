#!/usr/bin/env bash
# fresh.sh: what a new user sees: both commands of the README on a Debian that has nothing but its base.
#
#   sudo ./scripts/fresh.sh bookworm|trixie [--demo | --test] [--folder DIR] [--keep] [-- ARGUMENT…]
#
#   --demo, --test   only this one of the two commands
#   --folder DIR     where the roots and their base archives lie (default /var/tmp/kiln-fresh)
#   --keep           leave the root for a look inside: chroot DIR/SUITE
#   -- ARGUMENT…     handed to scripts/test.sh (-L api, -R …)
#
# Needs root, debootstrap and util-linux. The sources are those of the last commit, cloned without
# anything that git ignores. The mirror is the one in this machine's apt sources; proxies, certificates and
# pip's settings are taken from this machine too. The base is made once and kept as an archive; the
# root is unpacked anew each time. Mounts and processes live in namespaces of their own, so that none is left
# behind, however this ends. Logs stay in DIR. Exit code 0 when both commands passed, 77 where
# debootstrap is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source_folder=$PWD

die() {
    echo "fresh.sh: $*" >&2
    exit 2
}

suite="" folder=/var/tmp/kiln-fresh keep=no commands=(demo test) test_arguments=()
while [[ $# -gt 0 ]]; do
    case $1 in
    bookworm | trixie) suite=$1 ;;
    --demo) commands=(demo) ;;
    --test) commands=(test) ;;
    --folder) folder=${2:?--folder needs a path}; shift ;;
    --keep) keep=yes ;;
    --) shift; test_arguments=("$@"); break ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown argument $1 (see --help)" ;;
    esac
    shift
done
[[ -n $suite ]] || die "which Debian? bookworm or trixie (see --help)"
[[ $(id -u) == 0 ]] || die "must run as root: it makes and enters a root of its own"
command -v debootstrap >/dev/null || { echo "fresh.sh: debootstrap is not installed: skipped"; exit 77; }

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/$suite
base=$folder/$suite.tar
exec 9>"$folder/$suite.lock"
flock -n 9 || die "another one works in $root"

# The first Debian archive among this machine's apt sources that is not the security one.
mirror_find() {
    apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 2>/dev/null |
        awk '$2 == "main" && $1 ~ /\/debian\/?$/ { print $1; exit }'
}

# base_make: an archive of the suite's smallest system, once.
base_make() {
    local mirror
    [[ -f $base ]] && return 0
    mirror=$(mirror_find)
    [[ -n $mirror ]] || die "this machine's apt sources name no archive of Debian"
    echo "==> The base of $suite"
    rm -rf "$root"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" \
        >"$folder/$suite-base.log" 2>&1 || {
        tail -n 20 "$folder/$suite-base.log" >&2
        die "debootstrap failed"
    }
    rm -f "$root"/var/cache/apt/archives/*.deb
    tar -C "$root" --numeric-owner -cf "$base.part" .
    mv "$base.part" "$base"
}

# What reaches the outside on this machine: names, certificates, proxies, pip's settings.
settings_copy() {
    local file
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf \
        /etc/xdg/pip/pip.conf "$HOME/.config/pip/pip.conf"; do
        if [[ -f $file ]]; then install -D -m 644 "$file" "$root/${file/#$HOME\//root/}"; fi
    done
    apt-config dump | grep -Ei '^Acquire::(https?|ftp)::(proxy|ca)|^Acquire::Check-' \
        >"$root/etc/apt/apt.conf.d/90machine" || true
    env | grep -E '^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|PIP_[A-Z_]*|SSL_CERT_(FILE|DIR))=' \
        >"$folder/$suite.env" || true
}

# inside COMMAND…: in the root, with processes, devices and mounts of its own. Takes its shell's place: who
# ends that ends all of it.
inside() {
    local settings
    mapfile -t settings <"$folder/$suite.env"
    # shellcheck disable=SC2016 # the inner shell's variables
    exec unshare --mount --pid --fork --kill-child --propagation private sh -ec '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
        exec setsid --wait chroot "$root" "$@"' sh "$root" \
        env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${settings[@]}" "$@" 9>&- </dev/null
}

base_make
echo "==> A new root: $root"
rm -rf "$root"
mkdir -p "$root"
tar -C "$root" --numeric-owner -xpf "$base"
settings_copy
git clone -q --no-hardlinks "$source_folder" "$root/root/kiln"
if [[ -n $(git status --porcelain) ]]; then
    echo "    (changes that are not committed are not in it)"
fi

running=""
cleanup() {
    if [[ -n $running ]]; then
        kill -KILL "$running" 2>/dev/null || true
        wait "$running" 2>/dev/null || true
    fi
    [[ $keep == yes ]] || rm -rf "$root"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

result=0 rows=()
for command in "${commands[@]}"; do
    echo "==> ./scripts/$command.sh on $suite; its log is $folder/$suite-$command.log"
    arguments=()
    [[ $command == test ]] && arguments=("${test_arguments[@]}")
    from=$SECONDS outcome=passed
    inside sh -ec 'cd /root/kiln; exec "$@"' sh "./scripts/$command.sh" "${arguments[@]}" \
        >"$folder/$suite-$command.log" 2>&1 &
    running=$!
    wait "$running" || outcome="FAILED ($?)"
    running=""
    [[ $outcome == passed ]] || result=1
    rows+=("$(printf '%-9s scripts/%-8s %6d s  %s' "$suite" "$command.sh" $((SECONDS - from)) "$outcome")")
    if [[ $outcome != passed ]]; then tail -n 30 "$folder/$suite-$command.log"; fi
done
if [[ " ${commands[*]} " == *" test "* ]]; then
    sed -n '/^==> .*lint FAILED/p; /% tests passed/,$p' "$folder/$suite-test.log"
fi
echo "==> $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' <(tar -xOf "$base" ./usr/lib/os-release)), commit $(git rev-parse --short HEAD)"
printf '%s\n' "${rows[@]}"
exit $result
