#!/usr/bin/env python3
"""Predicts how long a training step takes on GPUs, from what is counted without one: FLOPs and bytes of each op, and its calls.

    experiments/gpu/predict.py BINARIES [CONFIG] [--set PATH=VALUE ...] [--batches 1 32 64 128] [--calls FILE]

BINARIES  folder of `comera` and `comera_in_software`; with two folders joined by a comma both are predicted, for before and after a change
CONFIG    encoder6-mnli
--calls   calls of ops, as `comera_in_software bench step CONFIG --steps 1 --warmup 0 --set train.device=cuda:0 --set train.batch=1 --json`
          prints them; without it that command runs (half a minute)

An op of n calls takes max(n CALL, FLOPs / (a share of the tensor cores' rate in TF32), bytes / (a share of the memory's rate)), and a step
the sum of its ops. CALL and the shares, below, are fitted to steps that an H200 took: five of nine, the others are a check
(experiments/results/2026-11-27-predicted-gpu-steps.md). Other devices have other rates and the same shares. The bound has all shares at 1 and
CALL at 0: what no program with these ops goes below.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

# Dense TF32 rate of the tensor cores, TFLOP/s, and memory rate, TB/s: NVIDIA's data sheets of H200 SXM, H100 SXM, A100 SXM 80 GB (TF32 with
# sparsity, halved) and the Ada architecture's white paper (RTX 4090).
DEVICES = {"H200": (494.7, 4.8), "H100": (494.7, 3.35), "A100": (156.0, 2.039), "RTX 4090": (82.6, 1.008)}
CALL = 7e-3  # ms, in a captured step
# Of the tensor cores' rate: attention and the feed-forward blocks under the waist by their own times (experiments/results/2026-11-26-gpu.md).
# Norms with products have not run on a GPU: their share is assumed to be that of the feed-forward blocks.
TENSOR = {"attention_forward": 0.051, "attention_backward": 0.033, "waist_activation": 0.073, "waist_activation_backward": 0.073,
          "norm_forward": 0.073, "norm_backward": 0.073}
PRODUCTS = ("gemm", "linear", "linear_backward")
TENSOR_OF_PRODUCTS, BYTES_OF_PRODUCTS, BYTES = 0.4, 0.5, 0.8  # the latter of the memory's rate


def bench(binary, config, sets, batch):
    command = [binary, "bench", "step", config, "--steps", "1", "--warmup", "0", "--json", *[x for s in [*sets, f"train.batch={batch}"] for x in ("--set", s)]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def predict(step, calls, tensor, memory):
    """Predicted ms, the bound in ms, and the predicted ms that are calls, tensor cores' and memory's."""
    gflop = sum(op["gflop"] for op in step["ops"] if op["op"] in PRODUCTS)
    total = bound = 0
    of = dict.fromkeys(("calls", "FLOPs", "bytes"), 0.0)
    for op in step["ops"]:
        name, is_product = op["op"], op["op"] in PRODUCTS
        gbyte = op["gbyte"] + (step["gemm_gbyte"] * op["gflop"] / gflop if is_product and gflop > 0 else 0)
        share = {"calls": calls.get(name, op["calls"]) * CALL, "FLOPs": op["gflop"] / (tensor * TENSOR.get(name, TENSOR_OF_PRODUCTS)),
                 "bytes": gbyte / (memory * (BYTES_OF_PRODUCTS if is_product else BYTES))}
        most = max(share, key=share.get)
        of[most] += share[most]
        total += share[most]
        bound += max(op["gflop"] / tensor, gbyte / memory)
    return total, bound, of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("config", nargs="?", default="encoder6-mnli")
    parser.add_argument("--set", dest="sets", action="append", default=[])
    parser.add_argument("--batches", type=int, nargs="+", default=(1, 32, 64, 128))
    parser.add_argument("--calls", type=Path)
    args = parser.parse_args()
    folders = [Path(folder) for folder in args.binaries.split(",")]
    counted = json.loads(args.calls.read_text()) if args.calls else bench(
        folders[-1] / "comera_in_software", args.config, [*args.sets, "train.device=cuda:0", "train.matmul=tf32"], 1)
    calls = {op["op"]: op["calls"] for op in counted["ops"]}
    print("| predicted, TF32 | batch | GFLOP | GB | " + " | ".join(f"{device}: ms (bound)" for device in DEVICES) + " | H200: calls, FLOPs, bytes |")
    print("|---" * (5 + len(DEVICES)) + "|")
    for folder in folders:
        for batch in args.batches:
            step = bench(folder / "comera", args.config, [*args.sets, "train.device=cpu"], batch)
            cells = [f"{ms:.2f} ({bound:.2f})" for ms, bound, _ in (predict(step, calls, *rates) for rates in DEVICES.values())]
            of = predict(step, calls, *DEVICES["H200"])[2]
            print(f"| {folder} | {batch} | {step['gflop']:.1f} | {step['gbyte'] + step['gemm_gbyte']:.2f} | " + " | ".join(cells) + " | "
                  + ", ".join(f"{of[kind]:.2f}" for kind in of) + " |", flush=True)


if __name__ == "__main__":
    main()
