#!/usr/bin/env bash
# Shows on a machine with an NVIDIA GPU that the CUDA backend is right, and how fast it is, in three parts of under nine
# minutes each. The order is that of interest: first whether it is right and where the time of a step goes, then the
# comparison, then what takes longest.
#
#     experiments/gpu/check.sh 1 [FOLDER]   versions; the build, for this device alone; ops, products, attention, captured
#                                           training; one step at batch 64 and 1, by op, and its products
#     experiments/gpu/check.sh 2 [FOLDER]   one step beside the published program and dense PyTorch, batch by batch
#     experiments/gpu/check.sh 3 [FOLDER]   all GPU tests, compute-sanitizer on small cases, a demo that is killed and
#                                           resumed twice; what may fill the device or its driver's pools comes last
#
# Results go to FOLDER (build/gpu-results): results-N.md, printed again at the end, and one archive of logs, logs-N.tar.gz.
# Needs the source tree, the CUDA toolkit (or the one that `COMERA_CUDA=pypi cmake/setup.sh` puts into build/pypi-cuda),
# CMake and a C++ compiler; the other packages come from build/gpu-kit (made by pack.sh) or are installed. A later part
# builds only if the first one was run elsewhere; programs that pack.sh --build has put into the kit are taken as they are.
# COMERA_CHECK_SECONDS is the most that a part may take (520). Skipped steps are named, with the reason.
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 1
which=${1:-}
[[ $which == [123] ]] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
out=${2:-build/gpu-results}
build=build/gpu-check # build/gpu is a folder of the usual build
limit=${COMERA_CHECK_SECONDS:-520} # seconds of this part
logs=$(mktemp -d)
mkdir -p "$out" "$build"
results=$out/results-$which.md
: >"$results"
say() { printf '%s\n' "$*" >>"$results"; }
left() { echo $((limit - SECONDS)); }

# The archive holds every log, the tables come last on the screen: the end of the output is the part that is always seen.
finish() {
  local status=$?
  ! grep -qF '**failed**' "$results" || status=1
  say ""
  say "$SECONDS s in all."
  tar -czf "$out/logs-$which.tar.gz" -C "$logs" . && rm -rf "$logs"
  cat "$results"
  exit $status
}
trap finish EXIT

# step NAME SECONDS COMMAND...: runs the command if a quarter of SECONDS is left; its output goes to NAME.json and NAME.log.
# Status 1: it failed; 2: there was no time for it.
step() {
  local name=$1 most=$2 begin=$SECONDS
  shift 2
  if (($(left) < most / 4)); then
    say "- $name: skipped, no time left"
    return 2
  fi
  ((most < $(left))) || most=$(left)
  echo "$(date -u +%T) $name" >&2
  if timeout --kill-after=10 "$most" "$@" >"$logs/$name.json" 2>"$logs/$name.log"; then
    say "- $name: ok in $((SECONDS - begin)) s"
  else
    local status=$?
    say "- $name: **failed** (status $status, $((SECONDS - begin)) s); the end of its log:"
    cat "$logs/$name.json" "$logs/$name.log" | tail -n 15 | cut -c 1-300 | sed 's/^/      /' >>"$results"
    return 1
  fi
}

PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin:$PWD/build/pypi-cuda/nvidia/cu13/bin
say "# CUDA backend, part $which, $(date -u +%F)"
say ""
gpu=$(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
python=$(python3 -c 'import torch; print("PyTorch", torch.__version__, "with" if torch.cuda.is_available() else "without", "the device")' 2>/dev/null)
say "Device: ${gpu:-none}. $(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/nvcc \1./p') $(nproc) cores. ${python:-No PyTorch}."
say ""

kit=$PWD/build/gpu-kit
export COMERA_ASSETS=$PWD/assets LD_LIBRARY_PATH=$kit/lib:$kit/pypi/scipy_openblas32/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
comera=$kit/bin/comera tests=$kit/bin/test_gpu
if ! { [[ -x $tests ]] && "$comera" doctor >"$logs/prebuilt.log" 2>&1; }; then
  command -v nvcc >/dev/null || { say "- nvcc: not found, nothing can be built"; exit 1; }
  options=(-S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCOMERA_CUDA=on)
  [[ -z $architecture ]] || options+=("-DCMAKE_CUDA_ARCHITECTURES=$architecture-real")
  [[ -d $kit ]] && options+=("-DCMAKE_PREFIX_PATH=$kit/usr" "-DCOMERA_PYPI_DIR=$kit/pypi")
  command -v ninja >/dev/null && options+=(-G Ninja)
  step configure 60 cmake "${options[@]}" || exit 1
  step build 300 cmake --build "$build" --parallel "$(nproc)" --target comera test_gpu || exit 1
  comera=$build/bin/comera tests=$build/bin/test_gpu
fi
if [[ -z $gpu ]]; then
  step test-emulated 120 "$tests" --gtest_brief=1
  say "- everything else: skipped, there is no CUDA device here"
  exit
fi

# bench NAME BATCH SECONDS OPTIONS...: one training step of six encoders on the device.
bench() {
  local name=$1 batch=$2 most=$3
  shift 3
  step "$name" "$most" "$comera" bench step encoder6-mnli --json --steps 50 --warmup 10 --set train.device=cuda:0 --set "train.batch=$batch" "$@"
}
# row NAME TITLE BATCH STATUS: its row of the table.
rows=()
row() {
  case $4 in
    0)
      rows+=("$(python3 - "$logs/$1.json" "$2" "$3" <<'P'
import json, sys
bench = json.load(open(sys.argv[1]))
bound = bench["limit_ms"], bench["bandwidth_ms"]
print(f"| {sys.argv[2]} | {sys.argv[3]} | {bench['step_ms']['median']:.3f} | {bench['memory']['measured_bytes'] / 2**20:.1f} | {bound[0]:.3f}, {bound[1]:.3f} |")
P
)")
      ;;
    2) rows+=("| $2 | $3 | skipped, no time left | | |") ;;
    *) rows+=("| $2 | $3 | failed | | |") ;;
  esac
}
table() {
  say ""
  say "## One training step of six encoders, sequence 128"
  say ""
  say "Up to two steps are in flight, as in training. Limits: matrix products at the measured product rate, all traffic, that of products included, at the measured copy rate."
  say "PyTorch: mean of 30 steps issued without waiting; the dense network has no dropout."
  say ""
  say "| program | batch | ms, median | memory, MiB | limits, ms |"
  say "|---|---|---|---|---|"
  for one in "${rows[@]}"; do say "$one"; done
}

case $which in
  1)
    step test-ops 120 "$tests" --gtest_filter='CudaOps.*'
    step test-products 60 "$tests" --gtest_filter='CudaFp8.*:CudaProducts.*:CudaStrips.*'
    step test-captured 60 "$tests" --gtest_filter='*CudaMethods.Captured*/comera:CudaCaptured.TwoThousandEdits*'
    step test-nccl 40 "$tests" --gtest_filter='CudaNccl.*'  # as many GPUs as there are
    for batch in 64 1; do
      bench "step-tf32-$batch" "$batch" 40 --set train.matmul=tf32
      row "step-tf32-$batch" "CoMERA Studio, tensor trains, tf32 products, captured" "$batch" $?
    done
    table
    step layers 40 "$comera" bench layers encoder6-mnli --steps 20 --set train.device=cuda:0 --set train.batch=64 --set train.matmul=tf32 &&
      { say ""; say "## Time of a step by op, batch 64, tf32"; say ""; sed 's/^/    /' "$logs/layers.json" >>"$results"; }
    step products 40 "$comera" bench gemm encoder6-mnli --set train.device=cuda:0 --set train.batch=64 --set train.matmul=tf32 &&
      { say ""; say "## Its products, tf32"; say ""; sed 's/^/    /' "$logs/products.json" >>"$results"; }
    ;;
  2)
    # Batch by batch, so that each row has its peers from the same minutes of the device.
    torch=""
    [[ $python == *" with "* ]] && torch=1
    for batch in 64 1 32 128; do
      for kind in tf32/true/false tf32/false/false tf32/false/true bf16/true/false fp32/true/false; do
        IFS=/ read -r matmul probabilities waist <<<"$kind"
        [[ $matmul != fp32 || $batch == 64 ]] || continue
        name=step-$matmul-$probabilities-$waist-$batch
        bench "$name" "$batch" 30 --set "train.matmul=$matmul" --set "model.encoder.keep_probabilities=$probabilities" --set "method.waist=$waist"
        kept="probabilities $([[ $probabilities == true ]] && echo kept || echo recomputed)"
        [[ $waist == false ]] || kept="wide tensors recomputed"
        row "$name" "CoMERA Studio, tensor trains, $matmul products, $kept" "$batch" $?
      done
      if [[ $batch == 64 ]]; then
        for kind in tt/adamw/bf16/bf16 tt/adamw/fp8/bf16 dense/adamw/tf32/exact dense/galore/tf32/exact; do
          IFS=/ read -r weights optimizer matmul stash <<<"$kind"
          name=step-$weights-$optimizer-$matmul-$stash-$batch
          bench "$name" "$batch" 40 --set "train.matmul=$matmul" --set "method.stash=$stash" --set "method.weights=$weights" \
            --set "method.optimizer=$optimizer" --set method.galore.rank=128
          row "$name" "CoMERA Studio, $([[ $weights == tt ]] && echo 'tensor trains' || echo "dense, $optimizer"), $matmul products, $stash stash" "$batch" $?
        done
      fi
      if [[ -n $torch ]]; then
        for program in published dense; do
          [[ $program == dense || -d $kit/published ]] || continue
          script=(python3 "experiments/gpu/${program}_torch.py")
          [[ $program == dense ]] || script+=("$kit/published")
          step "$program-$batch" 90 "${script[@]}" --batch "$batch" --seconds "$(($(left) < 90 ? $(left) : 90))" &&
            while read -r line; do [[ $line != \|* ]] || rows+=("${line% |*} | |"); done <"$logs/$program-$batch.json"
        done
      fi
    done
    [[ -n $torch ]] || rows+=("| published CoMERA, dense PyTorch | | skipped: no PyTorch that sees the device | | |")
    [[ -z $torch || -d $kit/published ]] || rows+=("| published CoMERA | | skipped: pack.sh was given no checkout of it | | |")
    table
    ;;
  3)
    # Of each kernel a small case: compute-sanitizer is hundreds of times slower. These only compare results, so they share the device.
    if command -v compute-sanitizer >/dev/null; then
      small='_31_|_31|attention_|lists|permute_10|column_sum_(31|norm_(33|cross_entropy_(33|table_(70|ttm_(4|stash_(33|rank_mask_(31|rank_objective_02|singular_basis_(6, 9)'
      for tool in memcheck racecheck; do
        step "$tool" 150 env COMERA_CUDA_CASES="$small" compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" --gtest_filter='CudaOps.*' &
      done
    else
      say "- compute-sanitizer: skipped, it is not installed"
    fi
    step resume 150 env COMERA_BIN="$(realpath "$comera")" COMERA_TEST_STEPS="${COMERA_TEST_STEPS:-20000}" python3 -B tests/gpu/command_line.py &
    step test-training 150 "$tests" --gtest_filter='*CudaMethods.StepByStep*' &
    step test-captured 150 "$tests" --gtest_filter='CudaCaptured.*:*CudaMethods.Captured*:-*LeakNothing*' &
    wait
    step test-leaks 60 "$tests" --gtest_filter='*LeakNothing*'
    step test-memory 60 "$tests" --gtest_filter='CudaMemory.*'
    ;;
esac
