"""A trained dense language model as matrices of low rank: by plain SVD and by gradients at the same ranks, and at ranks by gradients at the same size.

    ./run.sh data get wordnet-text
    python3 experiments/compress/gradients.py run   --store compress.db [--ranks 16 32 ...]
    python3 experiments/compress/gradients.py table --store compress.db > table.md

The dense models of compress.py (made where the store lacks them), each read again with one rank for all matrices, by `comera train
hf:FOLDER --method comera` alone and with `--tt-gradients 64`, and at the size that this gives by `--tt-compression X --tt-gradients 64`: the
validation perplexity right away, and after the fine-tuning of compress.py.
"""
import argparse
from pathlib import Path

from compress import COURSE, MODEL, SEEDS, STEPS, TUNED, TUNING, Results, comera, sets, spread, train

RANKS = (16, 32, 64, 128)
KINDS = ("attention", "classifier", "ffn_in", "ffn_out")  # the table of 256 bytes stays dense
BY_SIZE = "ranks by gradients"
WAYS = {"plain": (), "by gradients": ("--tt-gradients", 64), BY_SIZE: ("--tt-gradients", 64)}


def run(args):
    results = Results(args.store)
    for seed in SEEDS:
        dense = results.of(f"dense-{seed}", lambda: train(args, "llama-10m", "--method", "adamw", "--steps", STEPS, "--seed", seed,
                                                          *sets(MODEL, COURSE, ["train.lr=1e-3"])))
        folder = args.store.with_name(f"{args.store.stem}-{seed}")
        if not folder.exists():
            comera("export", dense["run"], "--to", "huggingface", "-o", folder, "--store", args.store)
        for rank in args.ranks:
            ranks = [f"model.tt.{kind}.rank={rank}" for kind in KINDS]
            for way, options in WAYS.items():
                if way == BY_SIZE:
                    options, ranks = (*options, "--tt-compression", results.known[f"plain-{rank}-0-{seed}"]["trains"]), ()
                for steps in (0, TUNING):  # 0: a step with rates of 0
                    rates = TUNED if steps else [*TUNED, "train.lr=0", "train.lr_core=0"]
                    results.of(f"{way}-{rank}-{steps}-{seed}", lambda: train(
                        args, f"hf:{folder}", "--task", "lm", "--method", "comera", *options, "--steps", max(1, steps), "--seed", seed,
                        *sets(MODEL, COURSE, rates, ranks)))


def table(args):
    known = Results(args.store).known
    of = lambda name: [known[f"{name}-{seed}"] for seed in SEEDS if f"{name}-{seed}" in known]
    print("| Rank | Times fewer values | " + " | ".join(f"{when}, {way}" for when in ("At once", "After fine-tuning") for way in WAYS) + " |\n|---|---|---|---|---|---|")
    for rank in args.ranks:
        found = [of(f"{way}-{rank}-{steps}") for steps in (0, TUNING) for way in WAYS]
        if found[0]:
            print(f"| {rank} | {found[0][0]['ratio']:.1f} | " + " | ".join(spread([r["perplexity"] for r in one]) for one in found) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--ranks", nargs="+", type=int, default=RANKS)
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
