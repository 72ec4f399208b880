#!/usr/bin/env python3
"""A model of weak scaling to 4,096 GPUs, for tensor trains and dense networks: a table, and a picture where asked. Predicted, not measured.

    experiments/processes/model.py BINARY [--link GBPS] [--latency US] [--svg FILE]

The preset encoder6-mnli, 64 sequences a GPU. Bytes that a process sends are those of `comera plan --processes N`; what a GPU computes in a
step was measured on one (2026-11-26-gpu.md). Each GPU sends at --link (10^9 bytes a second, default 25: one InfiniBand NDR200 port); a sum
takes 2 log2(N) messages one after another of --latency each (default 10). Nothing overlaps with the computation, so this is a lower limit."""
import argparse
import json
import math
import subprocess

PRESET, A_GPU = "encoder6-mnli", 64
# Name: method of the plan, ms a step of one GPU, where they are from.
CASES = {
    "CoMERA": ("comera", 9.175, "waist, TF32"),
    "dense AdamW": ("adamw", 15.615, "TF32"),
    "GaLore, COAP": ("galore", 15.615, "the time of AdamW: a lower limit"),
    "dense, bf16, compiled": ("adamw", 6.654, "PyTorch"),
}
COLORS = ("#d06020", "#3060a0", "#60a030", "#8050a0")
SIZES = [2**i for i in range(13)]


def plan(binary, method, processes):
    if processes == 1:
        return 0
    args = [binary, "plan", PRESET, "--method", method, "--set", f"train.batch={A_GPU * processes}", "--processes", str(processes), "--json", "--quiet"]
    return json.loads(subprocess.run(args, check=True, capture_output=True).stdout)["network"]["sent_bytes"]


def draw(rows, path):
    width, height, edge = 860, 480, 60
    x = lambda count: edge + (width - 4 * edge) * math.log2(count) / math.log2(SIZES[-1])
    y = lambda share: height - edge - (height - 2 * edge) * share
    text = lambda px, py, words, more="": f'<text x="{px:.1f}" y="{py:.1f}" font-size="13" {more}>{words}</text>'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<path d="M{x(1):.1f} {y(share):.1f}H{x(SIZES[-1]):.1f}" stroke="#ddd"/>' + text(x(1) - 8, y(share) + 4, f"{100 * share:.0f} %", 'text-anchor="end"'))
    for count in SIZES[::2]:
        parts.append(text(x(count), y(0) + 20, f"{count:,}", 'text-anchor="middle"'))
    for (name, shares), color in zip(rows.items(), COLORS):
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="' + " ".join(f"{x(n):.1f},{y(s):.1f}" for n, s in zip(SIZES, shares)) + '"/>')
        parts.append(text(x(SIZES[-1]) + 8, y(shares[-1]) + 4, name, f'fill="{color}"'))
    parts.append(text(x(1), 30, "Predicted share of a step that computes, by GPUs (weak scaling, nothing overlaps)"))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--link", type=float, default=25)
    parser.add_argument("--latency", type=float, default=10)
    parser.add_argument("--svg")
    args = parser.parse_args()
    print(f"| predicted at {args.link:g} GB/s | ms of a GPU alone | MiB sent at 4,096 | " + " | ".join(f"{n:,}" for n in SIZES[1:]) + " |")
    print("|---" * (len(SIZES) + 2) + "|")
    rows = {}
    for name, (method, alone, origin) in CASES.items():
        sent = [plan(args.binary, method, count) for count in SIZES]
        steps = [alone + size / (args.link * 1e6) + 2e-3 * args.latency * math.log2(count) for count, size in zip(SIZES, sent)]
        rows[name] = [alone / step for step in steps]
        print(f"| {name} | {alone} ({origin}) | {sent[-1] / 2**20:.1f} | " + " | ".join(f"{step:.1f} ms, {100 * share:.0f} %" for step, share in zip(steps[1:], rows[name][1:])) + " |")
    if args.svg:
        draw(rows, args.svg)


if __name__ == "__main__":
    main()
