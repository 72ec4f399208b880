#!/usr/bin/env bash
# Sets up, builds everything and runs every test; ends with ctest's summary.
#
#     ./test.sh              every test
#     ./test.sh --quick      all but the slow ones (GoogleTest names with "Slow")
#     ./test.sh --asan       the same without those labelled `unsanitized`, under the address and undefined-behaviour sanitizers
#     ./test.sh --tsan       session, store, the window's reading of it, data and cpu, under the thread sanitizer
#     ./test.sh ... -- ARGS  ARGS go to ctest, e.g. `-- -R store`
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd -- "$root"
usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' test.sh >&2
  exit "$1"
}

preset=release
select=()
targets=(all)
while (($#)); do
  case $1 in
    --quick) select=(-LE '^slow$') ;;
    --asan) preset=asan select=(-LE '^(slow|unsanitized)$') ;;
    --tsan)
      # Where threads meet. The labels are the folders of tests/, one program each.
      preset=tsan select=(-L '^(session|store|data|cpu)$' -LE '^slow$') targets=(test_store_client)
      for folder in session store data cpu; do
        if compgen -G "tests/$folder/*.cpp" >/dev/null; then targets+=("test_$folder"); fi
      done
      ;;
    --help | -h) usage 0 ;;
    --)
      shift
      break
      ;;
    *)
      echo "error: unknown option $1" >&2
      usage 2
      ;;
  esac
  shift
done

cmake/setup.sh --tests
cmake/build.sh "$preset" "${targets[@]}"
dir=build
[[ $preset == release ]] || dir=build/$preset
# GCC 12's fake stack, which looks for use after return, is aligned to 32 bytes: the 64-byte vectors of core/cpu would fault.
# Short call stacks of allocations and a small quarantine of freed memory save time.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0:malloc_context_size=8:quarantine_size_mb=64}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
# The program has threads of its own and uses one of OpenBLAS. The others, which OpenBLAS starts by itself, spin at first: half
# the time of a short test.
export OPENBLAS_NUM_THREADS=1
# GCC 12's sanitizers cannot start under the wide address randomisation of newer kernels, so it is turned off for them.
fixed=()
if [[ $preset != release ]] && setarch -R true 2>/dev/null; then fixed=(setarch -R); fi
# One test more than there are cores: some wait for a run that is slowed down, or for the window.
exec "${fixed[@]}" ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel "$(($(nproc) + 1))" "${select[@]}" "$@"
