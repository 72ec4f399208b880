"""A trained dense language model as tensor trains by TT-SVD, at several errors, before and after fine-tuning.

    ./run.sh data get wordnet-text
    python3 experiments/compress/compress.py run   --store compress.db [--errors 0.2 0.4 ...]
    python3 experiments/compress/compress.py table --store compress.db > table.md
    python3 experiments/compress/compress.py draw  --store compress.db > compress.svg

`llama-10m` (10 million values) is trained with dense AdamW on SEEDS, exported as a folder of the transformers library, and read again as
tensor trains whose matrices each keep the relative error E (`comera train hf:FOLDER --method comera --tt-error E`): the perplexity on the
validation rows right away (0 steps), and after TUNING steps of fine-tuning, early stage, ranks fixed. The same fine-tuning of the dense model
is beside it, so that more training alone is not taken for recovery. A line of results a run lies beside the store; what is there is left out.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
SEEDS, STEPS, TUNING = (1, 2, 3), 600, 150
ERRORS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9)
MODEL = ["data.set=wordnet-text", "data.validation_rows=256"]
COURSE = ["train.batch=2", "train.schedule=linear", "train.warmup=30", "train.eval_every=0", "train.checkpoint_every=0", "train.checkpoint_minutes=0"]
TUNED = ["train.lr=3e-4", "train.lr_core=3e-4", "train.lr_rank=0", "method.comera.train_ranks=false"]


def comera(*args):
    done = subprocess.run([str(COMERA), *map(str, args), "--json", "--quiet"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"comera {' '.join(map(str, args))}: {done.stdout}")
    return json.loads(done.stdout)


def sets(*lists):
    return [word for each in lists for one in each for word in ("--set", one)]


class Results:
    def __init__(self, store):
        self.file = store.with_suffix(".jsonl")
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.known = {line["name"]: line for line in map(json.loads, lines)}

    def of(self, name, make):
        if name not in self.known:
            self.known[name] = {"name": name} | make()
            with self.file.open("a") as out:
                out.write(json.dumps(self.known[name]) + "\n")
            print(self.known[name], flush=True)
        return self.known[name]


def train(args, *words):
    done = comera("train", *words, "--store", args.store)
    return {"run": done["run"], "perplexity": done["metrics"]["val_perplexity"], "entries": done["size"]["model_entries"], "ratio": done["size"]["model_compression"],
            "trains": done["size"]["compression"]}


def run(args):
    results = Results(args.store)
    for seed in SEEDS:
        dense = results.of(f"dense-{seed}", lambda: train(args, "llama-10m", "--method", "adamw", "--steps", STEPS, "--seed", seed,
                                                          *sets(MODEL, COURSE, ["train.lr=1e-3"])))
        folder = args.store.with_name(f"{args.store.stem}-{seed}")
        if not folder.exists():
            comera("export", dense["run"], "--to", "huggingface", "-o", folder, "--store", args.store)

        def made(steps, *how):  # 0: a step with rates of 0
            rates = TUNED if steps else [*TUNED, "train.lr=0", "train.lr_core=0"]
            return train(args, f"hf:{folder}", "--task", "lm", *how, "--steps", max(1, steps), "--seed", seed, *sets(MODEL, COURSE, rates))
        results.of(f"more-{seed}", lambda: made(TUNING, "--method", "adamw"))
        for error in args.errors:
            how = ("--method", "comera", "--tt-error", error)
            results.of(f"cut-{error:g}-{seed}", lambda: made(0, *how))
            results.of(f"tuned-{error:g}-{seed}", lambda: made(TUNING, *how))


def rows_of(args):
    """(label, share of the dense values, perplexities cut, perplexities tuned), the dense model first."""
    known = Results(args.store).known
    of = lambda name: [known[f"{name}-{seed}"] for seed in SEEDS if f"{name}-{seed}" in known]
    dense = of("dense")
    rows = [("dense", 1.0, [r["perplexity"] for r in dense], [r["perplexity"] for r in of("more")])]
    for error in args.errors:
        cut, tuned = of(f"cut-{error:g}"), of(f"tuned-{error:g}")
        if cut:
            rows.append((f"{error:g}", statistics.mean(1 / r["ratio"] for r in cut), [r["perplexity"] for r in cut], [r["perplexity"] for r in tuned]))
    return rows


def spread(values):
    if not values:
        return ""
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def table(args):
    print("| Relative error of each matrix | Values, of the dense model's | Perplexity at once | After fine-tuning |\n|---|---|---|---|")
    for label, share, cut, tuned in rows_of(args):
        print(f"| {label} | {share:.3f} | {spread(cut)} | {spread(tuned)} |")


def draw(args):
    rows = rows_of(args)
    width, height, edge = 760, 420, 60
    dense = statistics.mean(rows[0][2])
    low, high = 0.97 * min(statistics.mean(v) for _, _, cut, tuned in rows for v in (cut, tuned) if v), 1.35 * dense
    most = max(share for _, share, _, _ in rows)
    x = lambda share: edge + (width - 2 * edge) * share / most
    y = lambda perplexity: height - edge - (height - 2 * edge) * (perplexity - low) / (high - low)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
             '<rect width="100%" height="100%" fill="white"/>']
    parts.append(f'<path d="M{edge} {y(dense):.1f}H{width - edge}" stroke="#888" stroke-dasharray="5 4"/><text x="{edge + 4}" y="{y(dense) - 6:.1f}">dense</text>')
    if rows[0][3]:
        more = statistics.mean(rows[0][3])
        parts.append(f'<path d="M{edge} {y(more):.1f}H{width - edge}" stroke="#888" stroke-dasharray="2 4"/><text x="{edge + 290}" y="{y(more) + 16:.1f}">dense, trained as long</text>')
    for at, color, words in ((2, "#3060a0", "at once"), (3, "#d06020", "after fine-tuning")):
        points = sorted((x(row[1]), y(statistics.mean(row[at])), row[0]) for row in rows[1:] if row[at] and statistics.mean(row[at]) < high)
        parts.append(f'<polyline fill="none" stroke="{color}" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points) + '"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{color}"/>' for a, b, _ in points]
        parts.append(f'<text x="{width - edge - 130}" y="{edge + 18 * (at - 2)}" fill="{color}">{words}</text>')
        if at == 3:
            parts += [f'<text x="{a:.1f}" y="{b + 18:.1f}" text-anchor="middle">{label}</text>' for a, b, label in points]
    for i in range(5):
        perplexity, share = low + (high - low) * i / 4, most * i / 4
        parts.append(f'<text x="{edge - 8}" y="{y(perplexity) + 4:.1f}" text-anchor="end">{perplexity:.1f}</text>')
        parts.append(f'<text x="{x(share):.1f}" y="{height - edge + 18}" text-anchor="middle">{share:.2f}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">values, of the dense model\'s</text><text x="10" y="24">validation perplexity; labels: relative error of each matrix</text></svg>')
    print("\n".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "draw"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--errors", nargs="+", type=float, default=ERRORS)
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table, "draw": draw}[args.what](args)


if __name__ == "__main__":
    main()
