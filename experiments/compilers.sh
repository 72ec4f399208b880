#!/usr/bin/env bash
# Builds everything with other C++ compilers, warnings as errors and without CUDA; with each, trains the demo for 20 steps, and
# runs the tests that are not slow.
#
#     experiments/compilers.sh [--programs | --no-run] [-O0] CXX...      # clang++-16 g++-14 ...
#       --programs   build both programs only, no tests
#       --no-run     build the tests too, but do not run them
#       -O0          in half the time; GCC warns of less then
#
# Builds are left in build/CXX.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
tests=ON runs=1 level=-O2 compilers=()
for word in "$@"; do
  case $word in
    --programs) tests=OFF runs=0 ;;
    --no-run) runs=0 ;;
    -O*) level=$word ;;
    -*)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
      exit 2
      ;;
    *) compilers+=("$word") ;;
  esac
done
((${#compilers[@]})) || exec "$0" --help
bad=0
for compiler in "${compilers[@]}"; do
  folder=build/${compiler##*/} start=$SECONDS
  mkdir -p "$folder"
  {
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_CXX_FLAGS_RELEASE=$level" \
      -DCOMERA_WERROR=ON -DCOMERA_CUDA=off -DCOMERA_TESTS=$tests &&
      cmake --build "$folder" -- -k 0 && "$folder/bin/comera" train demo --steps 20 --quiet --store "$folder/demo.db" &&
      { ((!runs)) || ctest --test-dir "$folder" -LE slow --output-on-failure; }
  } >"$folder.log" 2>&1 && result=passed || result="FAILED: $folder.log" bad=1
  printf '%-12s %-4s tests %-4s run %d %5d s  %s  (%s)\n' "$compiler" "$level" $tests $runs $((SECONDS - start)) "$result" "$("$compiler" --version | head -n 1)"
done
exit $bad
