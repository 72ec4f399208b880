#!/usr/bin/env bash
# Sets up, builds what changed, and runs CoMERA Studio: its command line, build/bin/comera, or its window.
#
#     ./run.sh                                    train the demo, with a live view
#     ./run.sh studio                             the window; `./run.sh studio --demo` trains the demo in it
#     ./run.sh --steps 50                         options of `comera train demo`
#     ./run.sh train mlp-fashion --steps 100      any verb; `./run.sh --help` lists them
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
"$root/cmake/setup.sh"
if [[ ${1:-} == studio ]]; then
  shift
  "$root/cmake/build.sh" release comera-studio
  exec "$root/build/bin/comera-studio" "$@"
fi
"$root/cmake/build.sh" release comera
case ${1:-} in
  --help | -h | --version) ;;           # of the program
  '' | -*) set -- train demo "$@" ;;    # nothing, or options of the demo
esac
exec "$root/build/bin/comera" "$@"
