#!/usr/bin/env bash
# Gets what the build needs, from Debian (apt-packages.txt) and PyPI (pypi-requirements.txt, pinned by hash).
# With everything there it does nothing and needs no network. run.sh and test.sh call it.
#
#     cmake/setup.sh [--retry] [--tests]
#       --retry   try again what failed before
#       --tests   get what tests need as well (apt-packages-tests.txt); without it they skip themselves
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(dirname -- "$here")/build
pypi=${COMERA_PYPI_DIR:-$build/pypi}  # the default of COMERA_PYPI_DIR in dependencies.cmake
requirements=$here/pypi-requirements.txt
retry=0 tests=0
for option in "$@"; do
  case $option in
    --retry) retry=1 ;;
    --tests) tests=1 ;;
  esac
done
mkdir -p "$build"
exec 9>"$build/.setup.lock"  # a second call waits for the first
flock 9

say() { echo "setup: $*" >&2; }
fail() {  # what, why, what to do
  printf 'error: %s\n  why: %s\n  try: %s\n' "$@" >&2
  exit 1
}
# build.sh configures again when this file is newer than its last configuration.
changed() { touch "$build/.setup-changed"; }

# ---- Debian packages ------------------------------------------------------------------------------------------
missing() {  # those of the named packages that are not installed
  local there
  there=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
  comm -23 <(printf '%s\n' "$@" | LC_ALL=C sort -u) <(LC_ALL=C sort -u <<<"$there")
}

install() {
  local as_root=() log=$build/apt.log
  local by_hand="sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
  if [[ $EUID -ne 0 ]]; then
    # With a terminal sudo may ask for the password; without one it must not hang.
    if sudo -n true 2>/dev/null || { [[ -t 0 && -t 2 ]] && command -v sudo >/dev/null; }; then
      as_root=(sudo)
    else
      fail "Debian packages are missing: $*" "this user may not install packages" "$by_hand"
    fi
  fi
  say "installing from Debian: $*"
  # A source of the machine's own that does not answer must not stop us, so only the installation decides.
  "${as_root[@]}" apt-get update >"$log" 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null || return 1
  changed
}

why_apt_failed() { sed -n '/Can not write log/d; s/^E: //p' "$build/apt.log" | head -n 1 | cut -c 1-200; }

names_in() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$1"; }
if command -v dpkg-query >/dev/null; then
  mapfile -t wanted < <(names_in "$here/apt-packages.txt")
  mapfile -t lacking < <(missing "${wanted[@]}")
  if ((${#lacking[@]})); then
    install "${lacking[@]}" ||
      fail "Debian packages could not be installed: ${lacking[*]}" "$(why_apt_failed)" "check the network, then run this again (log: build/apt.log)"
  fi
  mapfile -t lacking < <(((tests)) && mapfile -t wanted < <(names_in "$here/apt-packages-tests.txt") && missing "${wanted[@]}")
  tried=$build/.test-packages-failed
  if ((${#lacking[@]})); then
    say "without these some tests of the window are skipped: ${lacking[*]}"
    # In a shell of its own: a user who may not install them still has all other tests. Not tried again in each run.
    if ((retry)) || [[ ! -f $tried || $(<"$tried") != "${lacking[*]}" ]]; then
      if (install "${lacking[@]}"); then rm -f "$tried"; else echo "${lacking[*]}" >"$tried"; fi
    fi
  fi
else
  say "no dpkg here: the packages of cmake/apt-packages.txt are taken to be installed"
fi

# ---- PyPI packages --------------------------------------------------------------------------------------------
pin=$(sha256sum <"$requirements")
pin=${pin%% *}
[[ -f $pypi/.stamp && $(<"$pypi/.stamp") == "$pin" ]] && exit 0

# A failed download is not tried again in each run: with Debian's OpenBLAS in its place all but the window is there.
have_blas() { [[ -d $pypi/scipy_openblas32 || -z $(missing libopenblas-dev) ]]; }
if ((!retry)) && [[ -f $build/.pypi-failed && $(<"$build/.pypi-failed") == "$pin" ]] && have_blas; then
  [[ -d $pypi/scipy_openblas32 ]] || say "using Debian's OpenBLAS, slower on tensor trains (cmake/setup.sh --retry tries the pinned one again)"
  [[ -d $pypi/imgui_bundle ]] || say "the window is left out: its sources did not come from PyPI (cmake/setup.sh --retry tries again)"
  exit 0
fi

# Unpacked beside the old folder and moved at the end: an interrupted run leaves nothing half done.
fresh=$pypi.new
rm -rf "$fresh"
mkdir -p "$fresh"
trap 'rm -rf "$fresh"' EXIT
: >"$build/pip.log"

# One line of the requirements. Of imgui-bundle, a source package of 48 MB, only Dear ImGui and ImPlot are unpacked;
# cmake/sdist answers pip's questions about it.
get() {
  local cache=$fresh/.cache file
  rm -rf "$cache"
  mkdir -p "$cache"
  printf '%s\n' "$1" >"$cache/requirement.txt"
  PYTHONPATH=$here/sdist PYTHONDONTWRITEBYTECODE=1 python3 -m pip --disable-pip-version-check download --quiet --no-deps \
    --require-hashes --only-binary :all: --no-binary imgui-bundle --no-build-isolation --retries 2 --timeout 60 \
    -r "$cache/requirement.txt" -d "$cache" >>"$build/pip.log" 2>&1 || return 1
  for file in "$cache"/*.whl; do
    [[ ! -f $file ]] || python3 -m zipfile -e "$file" "$fresh" || return 1
  done
  for file in "$cache"/imgui_bundle-*.tar.gz; do
    [[ -f $file ]] || continue
    mkdir -p "$fresh/imgui_bundle"
    tar -xzf "$file" -C "$fresh/imgui_bundle" --strip-components=3 --no-same-owner --wildcards --no-wildcards-match-slash \
      '*/external/imgui/imgui/*.h' '*/external/imgui/imgui/*.cpp' '*/external/imgui/imgui/LICENSE.txt' \
      '*/external/imgui/imgui/backends/imgui_impl_glfw.*' '*/external/imgui/imgui/backends/imgui_impl_opengl3*' \
      '*/external/imgui/imgui/backends/imgui_impl_null.*' '*/external/imgui/imgui/misc/freetype/imgui_freetype.*' \
      '*/external/implot/implot/*.h' '*/external/implot/implot/*.cpp' '*/external/implot/implot/LICENSE' || return 1
  done
  rm -rf "$cache"
}

say "downloading from PyPI: $(sed -n 's/^\([a-z0-9-]*==[0-9.]*\).*/\1/p' "$requirements" | paste -sd' ')"
failed=()
while read -r line; do
  get "$line" || failed+=("${line%% *}")
done < <(sed -e '/^#/d' -e '/^[[:space:]]*$/d' "$requirements")
rm -rf "$fresh/.cache"
((${#failed[@]})) || echo "$pin" >"$fresh/.stamp"
rm -rf "$pypi"  # and what an older pin left there
mv "$fresh" "$pypi"
changed
if ((${#failed[@]} == 0)); then
  rm -f "$build/.pypi-failed"
  exit 0
fi

# After a broken connection pip's own last word is that no version exists.
why="PyPI cannot be reached"
grep -q 'connection broken' "$build/pip.log" || why=$(sed -n 's/^ERROR: \([^.]*\).*/\1/p' "$build/pip.log" | head -n 1)
if [[ ! -d $pypi/scipy_openblas32 ]]; then
  if ! command -v dpkg-query >/dev/null || { [[ -n $(missing libopenblas-dev) ]] && ! install libopenblas-dev; }; then
    fail "OpenBLAS could be had neither from PyPI nor from Debian" "$why" "check the network, then run this again (logs: build/pip.log, build/apt.log)"
  fi
  say "OpenBLAS did not come from PyPI: $why"
  say "using Debian's instead: all works, products of tensor trains are up to 3x slower (cmake/setup.sh --retry tries again)"
fi
[[ -d $pypi/imgui_bundle ]] ||
  say "the window is left out: Dear ImGui did not come from PyPI: $why (the command line has everything; cmake/setup.sh --retry tries again)"
echo "$pin" >"$build/.pypi-failed"
