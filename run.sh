#!/usr/bin/env bash
# Sets up, builds what changed, and runs CoMERA Studio: its window, build/bin/comera-studio, or its command line,
# build/bin/comera.
#
#     ./run.sh                                    the window; without a display the demo trains in the terminal
#     ./run.sh --demo --theme light               the same with options of how the window looks
#     ./run.sh studio --run RUN                   the window, with any of its options
#     ./run.sh --steps 50                         train the demo in the terminal, with options of `comera train demo`
#     ./run.sh train mlp-fashion --steps 100      any verb; `./run.sh --help` lists them
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
studio=$root/build/bin/comera-studio

# Nothing, or only options of how the window looks.
wants_window() {
  while (($#)); do
    case $1 in
      --demo | --theme=* | --size=* | --scale=* | --layout=* | --panel=*) shift ;;
      --theme | --size | --scale | --layout | --panel) (($# > 1)) && shift 2 || return 1 ;;
      *) return 1 ;;
    esac
  done
}

"$root/cmake/setup.sh"
if [[ ${1:-} == studio ]]; then
  shift
  "$root/cmake/build.sh" release comera-studio
  exec "$studio" "$@"
fi
if wants_window "$@"; then
  why="no display"
  if [[ -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; then
    why="its sources are missing"
    if [[ -d ${COMERA_PYPI_DIR:-$root/build/pypi}/imgui_bundle ]]; then
      why="it cannot be opened here"
      if ! "$root/cmake/build.sh" release comera-studio; then
        why="it could not be built"
      elif "$studio" --probe 2>/dev/null; then
        exec "$studio" "$@"
      fi
    fi
  fi
  echo "No window ($why; ./run.sh studio says more): the demo trains in the terminal. With a display ./run.sh opens the window." >&2
  set --
fi
"$root/cmake/build.sh" release comera
case ${1:-} in
  --help | -h | --version) ;;           # of the program
  '' | -*) set -- train demo "$@" ;;    # nothing, or options of the demo
esac
exec "$root/build/bin/comera" "$@"
