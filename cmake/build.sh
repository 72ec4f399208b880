#!/usr/bin/env bash
# Configures a preset of CMakePresets.json when it must, and builds targets of it: one progress line on a terminal (files done
# of all, seconds left), the whole log in build/PRESET.log, the errors on the screen.
#
#     cmake/build.sh PRESET TARGET...
#
# COMERA_CUDA of the environment is that of CMake (auto, on, off, pypi), for the presets that leave it open. COMERA_WERROR=ON
# makes errors of warnings; unset it stays as it was, since every file is built again when it changes.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
preset=$1
shift
log=build/$preset.log
dir=build
[[ $preset == release ]] || dir=build/$preset
mkdir -p "$dir"
# Ninja does not guard its folder: a second build waits here for the first.
exec 9>"$dir/.lock"
flock 9

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # without which it keeps nothing that reads a precompiled header
fi
: >"$log"
start=$SECONDS
failed() {  # what, lines of the log
  printf '\n%s\n' "$2" >&2
  printf 'error: %s\n  why: the lines above\n  try: the whole log is %s\n' "$1" "$log" >&2
  exit 1
}

# From the first failure on, without the compiler's command line.
first_error() {
  grep -m1 -A 40 -E '^FAILED:|CMake Error|^ninja: error' "$log" | grep -vE '^(ccache )?/[^ ]*/(c\+\+|g\+\+|nvcc) ' || tail -n 20 "$log"
}

# A cache that was made in another place (the folder was moved or copied) names files that are gone.
if [[ -f $dir/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$dir/CMakeCache.txt"; then
  rm -rf "$dir/CMakeCache.txt" "$dir/CMakeFiles" "$dir/.configured"
fi
# Ninja configures again by itself when a CMake file changed; it knows of neither the presets nor the packages.
configured=$dir/.configured  # holds COMERA_CUDA of then
cuda=
[[ $preset != release && $preset != package ]] || cuda=${COMERA_CUDA:-}
options=(-U 'OPENBLAS_*')  # where the BLAS was found last time may be gone
if [[ -f $configured && $(<"$configured") != "$cuda" ]]; then  # another compiler, then
  options+=(-U COMERA_CUDA -U 'CMAKE_CUDA_*' -U 'CUDAToolkit_*')
  rm -rf "$configured" "$dir"/CMakeFiles/[0-9]*/CMake*CUDA*
fi
[[ -z $cuda ]] || options+=("-DCOMERA_CUDA=$cuda")
# What was configured with a compiler cache cannot be built without it.
if ! command -v ccache >/dev/null && grep -qs 'COMPILER_LAUNCHER:STRING=ccache' "$dir/CMakeCache.txt"; then
  options+=(-U 'CMAKE_*_COMPILER_LAUNCHER')
  rm -f "$configured"
fi
if [[ -n ${COMERA_WERROR:-} ]] && ! grep -qs "^COMERA_WERROR:.*=$COMERA_WERROR\$" "$dir/CMakeCache.txt"; then
  options+=("-DCOMERA_WERROR=$COMERA_WERROR")
  rm -f "$configured"
fi
# On a terminal one line is drawn over; elsewhere only the end is printed.
show=0
[[ -t 2 ]] && show=1
if [[ ! -f $dir/build.ninja || ! -f $dir/CMakeCache.txt || ! -f $configured || CMakePresets.json -nt $configured || build/.setup-changed -nt $configured ]]; then
  ((!show)) || printf '\rConfiguring the build\033[K' >&2
  cmake --preset "$preset" "${options[@]}" >>"$log" 2>&1 || failed "the build could not be configured" "$(tail -n 30 "$log")"
  echo "$cuda" >"$configured"
fi

# Ninja's lines begin with [done/all seconds]. The seconds left are a guess: as many for each file to come as for those done.
export NINJA_STATUS='[%f/%t %e] '
cmake --build "$dir" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target "$@" 2>&1 | tee -a "$log" |
  awk -v show="$show" -F '[][/ ]' 'show && /^\[[0-9]+\/[0-9]+ [0-9.]+\]/ {
    left = $2 ? sprintf(", about %d s left", $4 * ($3 - $2) / $2 + 0.5) : ""
    printf "\rBuilding: %d of %d files%s\033[K", $2, $3, left > "/dev/stderr" }' ||
  failed "the build failed" "$(first_error)"
((show)) && printf '\r\033[K' >&2
((SECONDS - start < 3)) || echo "Built ($preset) in $((SECONDS - start)) s" >&2
