#!/usr/bin/env bash
# Proves that the project builds and runs on a new machine: makes a Debian 12 with only its base system in a temporary
# folder, clones this repository's HEAD into it, and runs ./run.sh and ./test.sh there as they stand. Removes it all.
# Needs root, debootstrap and a network with Debian's and PyPI's packages.
#
#     experiments/clean_machine.sh [--steps N] [--first | --full] [--keep]
#       --steps N   length of the demo's training (20)
#       --first     only the first start of the window
#       --full      every test, not ./test.sh --quick
#       --keep      leave the folder there and print where it is
set -euo pipefail
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
steps=20 tests=--quick keep=0 first=0
while (($#)); do
  case $1 in
    --steps) steps=${2:?--steps needs a number} && shift ;;
    --first) first=1 ;;
    --full) tests= ;;
    --keep) keep=1 ;;
    *)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
fail() {  # what, why, what to do
  printf 'error: %s\n  why: %s\n  try: %s\n' "$@" >&2
  exit 1
}
[[ $EUID -eq 0 ]] || fail "the clean machine cannot be made" "chroot needs root" "sudo $0"
command -v debootstrap >/dev/null || fail "the clean machine cannot be made" "debootstrap is not installed" "apt-get install debootstrap"

machine=$(mktemp -d "${TMPDIR:-/tmp}/clean_machine.XXXXXX")
chmod 755 "$machine"  # apt drops its rights in there
cleanup() {
  if ((keep)); then echo "kept: $machine"; else rm -rf --one-file-system "$machine"; fi
}
trap cleanup EXIT

times=()
timed() {  # label, command...: fails with the command
  local label=$1 start=$SECONDS
  shift
  printf '\n==== %s\n' "$label"
  "$@"
  times+=("$(printf '%6d s  %s' $((SECONDS - start)) "$label")")
}
finish() {
  printf '\nAll passed on a clean Debian 12:\n'
  printf '%s\n' "${times[@]}"
  exit
}
# With terminals, as any machine has. Mounts live in a namespace of their own, so removing the folder later can reach nothing of this machine. No variable
# of this machine gets in but the proxies and the number of compiler processes.
network=()
inside() {  # "${network[@]}" in front: no network
  # shellcheck disable=SC2046 # one word a variable
  unshare --mount --pid --fork --mount-proc="$machine/proc" "${network[@]}" \
    sh -c 'mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" && mount --bind "$1/dev/pts/ptmx" "$1/dev/ptmx" && exec chroot "$@"' - "$machine" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/var/tmp \
    $(env | grep -E '^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|CMAKE_BUILD_PARALLEL_LEVEL)=' || true) "$@"
}

debian() { debootstrap --variant=minbase bookworm "$machine" >"$machine.log" || { cat "$machine.log"; return 1; }; }
timed "a Debian 12 with only the base system" debian
rm -f "$machine.log"
# How this machine reaches the packages: name servers, apt and pip settings, certificates of its own.
cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
for settings in /etc/apt/apt.conf.d/*proxy* /etc/pip.conf /usr/local/share/ca-certificates/*.crt; do
  [[ -f $settings ]] && mkdir -p "$machine/${settings%/*}" && cp -L "$settings" "$machine/$settings"
done
# A path with a space, since users have them.
project="/srv/CoMERA Studio"
git -c safe.directory='*' clone --quiet --no-hardlinks "$repository" "$machine$project"

# A display stands in for the screen that a user has.
timed "xvfb (no part of the start)" inside sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends xvfb xauth' >/dev/null
timed "./run.sh studio, first time: installs, builds, opens the window, trains $steps steps" \
  inside sh -c 'xvfb-run -a "$@"; exit' - "$project/run.sh" studio --demo --step "$steps" --screenshot /var/tmp/first.png  # xvfb-run cannot be process 1
if ((first)); then finish; fi
timed "./run.sh: builds the command line, trains $steps steps" inside "$project/run.sh" --steps "$steps"
timed "./run.sh --version, second time" inside "$project/run.sh" --version
network=(--net)
timed "./run.sh without a network: trains $steps steps" inside "$project/run.sh" --steps "$steps"
network=()
timed "./test.sh $tests" inside "$project/test.sh" $tests
finish
