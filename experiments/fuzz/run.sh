#!/usr/bin/env bash
# Fuzzes the readers of every format: coverage-guided (libFuzzer), address and undefined-behaviour sanitizers, 2 GiB of memory and 10 s an input.
#
#     experiments/fuzz/run.sh SECONDS [TARGET...]      # each target for so long; all without a name
#
# Needs Clang with its runtime (Debian: clang) and Pillow. Inputs are kept in build/fuzz/corpus, finds in build/fuzz/finds.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
(($#)) || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
seconds=$1
shift
folder=build/fuzz
if [[ ! -f $folder/build.ninja ]]; then
  cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${CXX:-clang++}" -DCOMERA_CUDA=off -DCOMERA_TESTS=OFF -DCOMERA_FUZZ=ON \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -gline-tables-only -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined" >"$folder.log"
fi
cmake --build $folder --target fuzz >>"$folder.log"
mkdir -p $folder/finds
python3 experiments/fuzz/seeds.py $folder/seeds
targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(ls $folder/seeds)
bad=0
for target in "${targets[@]}"; do
  mkdir -p "$folder/corpus/$target"
  log=$folder/$target.log
  if COMERA_FUZZ_TARGET=$target ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 $folder/bin/fuzz "$folder/corpus/$target" "$folder/seeds/$target" \
    -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 -artifact_prefix="$folder/finds/$target-" -print_final_stats=1 >"$log" 2>&1
  then result=clean; else result="FOUND, see $log" bad=1; fi
  printf '%-16s %9s inputs  %6s edges  %s\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
    "$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)" "$result"
done
exit $bad
