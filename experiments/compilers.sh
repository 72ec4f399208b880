#!/usr/bin/env bash
# Builds everything, tests too, with other C++ compilers, warnings as errors and without CUDA; with each, trains the demo for
# 20 steps and runs the tests that are not slow where --test is given.
#
#     experiments/compilers.sh [--test] [-O0] CXX...      # clang++-16 g++-14 ...
#
# Builds are left in build/CXX. -O0 halves the time of a build; GCC warns of less then.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
test=0 level=-O2 compilers=()
for word in "$@"; do
  case $word in
    --test) test=1 ;;
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
      -DCOMERA_WERROR=ON -DCOMERA_CUDA=off &&
      cmake --build "$folder" && "$folder/bin/comera" train demo --steps 20 --quiet --store "$folder/demo.db" &&
      { ((!test)) || ctest --test-dir "$folder" -LE slow --output-on-failure; }
  } >"$folder.log" 2>&1 && result=passed || result="FAILED: $folder.log" bad=1
  printf '%-12s %-4s %5d s  %s  (%s)\n' "$compiler" "$level" $((SECONDS - start)) "$result" "$("$compiler" --version | head -n 1)"
done
exit $bad
