#!/usr/bin/env bash
# Shows on a machine with an NVIDIA GPU that the CUDA backend is right, and how fast it is: builds without the window, runs
# the GPU tests, compute-sanitizer on the small ones, and the benchmarks. Needs the source tree, the CUDA toolkit (or the one
# that `COMERA_CUDA=pypi cmake/setup.sh` puts into build/pypi-cuda), CMake and a C++ compiler; what else it needs is in
# build/gpu-kit (made by pack.sh) or installed. Takes under 9 minutes; what does not fit, or has no tool here, is named in
# the results as skipped.
#
#     experiments/gpu/check.sh [FOLDER]     results go to FOLDER (build/gpu-results): results.md, and the logs beside it
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 1
out=${1:-build/gpu-results}
build=build/gpu-check # build/gpu is a folder of the usual build
limit=520 # seconds in all
mkdir -p "$out" "$build"
results=$out/results.md
: >"$results"
say() { printf '%s\n' "$*" | tee -a "$results"; }
left() { echo $((limit - SECONDS)); }
failed=0

# part NAME SECONDS COMMAND...: runs it when so many seconds are left; its output goes to NAME.json and NAME.log. Status 1: it
# failed; 2: there was no time for it.
part() {
  local name=$1 most=$2 begin=$SECONDS
  shift 2
  if (($(left) < most / 4)); then
    say "- $name: skipped, no time left"
    return 2
  fi
  ((most < $(left))) || most=$(left)
  if timeout --kill-after=10 "$most" "$@" >"$out/$name.json" 2>"$out/$name.log"; then
    say "- $name: ok in $((SECONDS - begin)) s"
  else
    local status=$?
    failed=1
    say "- $name: **failed** (status $status, $((SECONDS - begin)) s); the end of its log:"
    cat "$out/$name.json" "$out/$name.log" | tail -n 15 | cut -c 1-300 | sed 's/^/      /' | tee -a "$results"
    return 1
  fi
}

PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin:$PWD/build/pypi-cuda/nvidia/cu13/bin
say "# CUDA backend, $(date -u +%F)"
say ""
gpu=$(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
say "Device: ${gpu:-none}. $(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/nvcc \1./p') $(nproc) cores."
say ""
say "## Checks"
say ""
command -v nvcc >/dev/null || { say "- nvcc: not found, nothing can be built"; exit 1; }

kit=$PWD/build/gpu-kit
options=(-S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCOMERA_CUDA=on)
[[ -d $kit ]] && options+=("-DCMAKE_PREFIX_PATH=$kit/usr" "-DCOMERA_PYPI_DIR=$kit/pypi")
command -v ninja >/dev/null && options+=(-G Ninja)
part configure 60 cmake "${options[@]}" || exit 1
part build 300 cmake --build "$build" --parallel "$(nproc)" --target comera test_gpu || exit 1
comera=$build/bin/comera
if [[ -z $gpu ]]; then
  part test-emulated 120 "$build/bin/test_gpu" --gtest_brief=1
  say "- everything else: skipped, there is no CUDA device here"
  exit $failed
fi

part test-ops 120 "$build/bin/test_gpu" --gtest_filter='CudaOps.*:CudaMemory.*'
part test-products 60 "$build/bin/test_gpu" --gtest_filter='CudaFp8.*:CudaProducts.*:CudaAttention.*'
part test-training 120 "$build/bin/test_gpu" --gtest_filter='*CudaMethods.StepByStep*'
part test-captured 120 "$build/bin/test_gpu" --gtest_filter='CudaCaptured.*:*CudaMethods.Captured*'
if command -v compute-sanitizer >/dev/null; then
  # Of each kernel a small case: it is hundreds of times slower.
  small='_31_|_31|attention_|lists|permute_10|column_sum_(31|norm_(33|cross_entropy_(33|table_(70|ttm_(4|stash_(33|rank_mask_(31|rank_objective_02|singular_basis_(6, 9)'
  part memcheck 60 env COMERA_CUDA_CASES="$small" compute-sanitizer --tool memcheck --error-exitcode 9 "$build/bin/test_gpu" --gtest_filter='CudaOps.*'
  part racecheck 60 env COMERA_CUDA_CASES="$small" compute-sanitizer --tool racecheck --error-exitcode 9 "$build/bin/test_gpu" --gtest_filter='CudaOps.*'
else
  say "- compute-sanitizer: skipped, it is not installed"
fi
part demo 60 "$comera" train demo --steps 300 --seed 1 --device cuda:0 --store "$out/demo.db" --json --quiet
part demo-cpu 60 "$comera" train demo --steps 300 --seed 1 --device cpu --store "$out/demo.db" --json --quiet
rm -rf "$out"/demo.db* "$out/checkpoints"

# Weights, products and what backward keeps: of layers, and of attention. The table is written when all of it is there: what parts say would stand between
# its rows.
rows=()
for kind in tt/adamw/fp32/exact tt/adamw/tf32/exact tt/adamw/tf32/exact/false tt/adamw/bf16/exact tt/adamw/bf16/bf16 tt/adamw/fp8/bf16 \
  dense/adamw/tf32/exact dense/galore/tf32/exact; do for batch in 1 32 64 128; do
  IFS=/ read -r weights optimizer matmul stash probabilities <<<"$kind"
  step=step-${kind//\//-}-$batch
  case $weights-$optimizer in
    tt-*) name="tensor trains" ;;
    *-galore) name="dense, GaLore of rank 128" ;;
    *) name="dense, AdamW" ;;
  esac
  name="CoMERA Studio, $name, $matmul products, $stash stash${probabilities:+, attention computed again}"
  part "$step" 40 "$comera" bench step encoder6-mnli --json --steps 50 --warmup 10 --set train.device=cuda:0 --set "train.matmul=$matmul" \
    --set "method.stash=$stash" --set "method.weights=$weights" --set "method.optimizer=$optimizer" --set method.galore.rank=128 --set "train.batch=$batch" \
    --set "model.encoder.keep_probabilities=${probabilities:-true}"
  case $? in
    0)
      rows+=("$(python3 - "$out/$step.json" "$batch" "$name, captured" <<'P'
import json, sys
bench = json.load(open(sys.argv[1]))
print(f"| {sys.argv[3]} | {sys.argv[2]} | {bench['step_ms']['median']:.3f} | {bench['memory']['measured_bytes'] / 2**20:.1f} |")
P
)") || failed=1
      ;;
    2) rows+=("| $name | $batch | skipped, no time left | |") ;;
    *) rows+=("| $name | $batch | failed | |") ;;
  esac
done; done
say ""
say "## One training step of six encoders, sequence 128"
say ""
say "Up to two steps are under way at a time, as in training. Dense PyTorch: mean of 30 steps that are issued without waiting, no dropout."
say ""
say "| program | batch | ms, median | memory, MiB |"
say "|---|---|---|---|"
for row in "${rows[@]}"; do say "$row"; done
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  if [[ -d $kit/published ]]; then
    timeout "$(left)" python3 experiments/gpu/published_torch.py "$kit/published" --seconds "$(($(left) / 2))" 2>"$out/published.log" | tee -a "$results"
  else
    say "| published CoMERA | | skipped: pack.sh was given no checkout of it | |"
  fi
  timeout "$(left)" python3 experiments/gpu/dense_torch.py --seconds "$(($(left) - 10))" 2>"$out/torch.log" | tee -a "$results"
else
  say "| published CoMERA, dense PyTorch | | skipped: no PyTorch that sees the device | |"
fi
say ""
say "$SECONDS s in all."
exit $failed
