#!/usr/bin/env python3
"""What kernels ask of a GPU, counted on the GPU in software (tests/gpu/ptx). Counts are exact and say nothing of time.

    COMERA_PTX_COUNTS=counts.tsv build/bin/comera_in_software bench step encoder6-mnli --steps 1 --warmup 0 \\
        --set train.device=cuda:0 --set train.batch=1 --set train.matmul=tf32
    experiments/gpu/counts.py counts.tsv [ROWS]     a table in Markdown, most instructions first

longest: instructions of the longest warp of a launch, its mean over the launches. sectors: of 32 bytes in global memory, as
instructions ask for them, and how many times as many as would hold the bytes. banks: how often shared memory is asked for one
instruction. What cuBLASLt does is not in it.
"""
import re
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        names = next(file).split()
        rows = [dict(zip(names, line.rstrip("\n").split("\t"))) for line in file]
    for row in rows:
        for name in names[:-1]:
            row[name] = int(row[name])
        row["kernel"] = re.sub(r"(void |comera::gpu::|comera::|run_body<|\(.*)", "", row["kernel"]).removesuffix(">")[:60]
    rows.sort(key=lambda row: -row["instructions"])
    total = {name: sum(row[name] for row in rows) for name in names[:-1]}
    print("| kernel | launches | blocks a launch | instructions of warps, M | longest | sectors, MB | banks |")
    print("|---|---|---|---|---|---|---|")
    for row in [total | {"kernel": "all"}] + rows[: int(sys.argv[2]) if len(sys.argv) > 2 else None]:
        launches = max(row["launches"], 1)
        sectors = f"{row['sectors'] * 32 / 1e6:.1f}, x {row['sectors'] / max(row['least'], 1):.1f}"
        banks = f"{row['passes'] / row['accesses']:.1f}" if row["accesses"] else ""
        print(f"| {row['kernel']} | {row['launches']} | {row['blocks'] / launches:.0f} | {row['instructions'] / 1e6:.2f} "
              f"| {row['longest'] / launches:.0f} | {sectors} | {banks} |")


if __name__ == "__main__":
    main()
