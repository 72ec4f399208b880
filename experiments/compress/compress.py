"""A trained dense model as tensor trains by TT-SVD, at several errors, before and after fine-tuning.

    ./run.sh data get sst2-vader
    python3 experiments/compress/compress.py run   --store compress.db [--errors 0.2 0.4 ...]
    python3 experiments/compress/compress.py table --store compress.db > table.md
    python3 experiments/compress/compress.py draw  --store compress.db > compress.svg

A text encoder of 3 layers (d_model 256) is trained with dense AdamW on SEEDS, exported as a folder of the transformers library, and read
again as tensor trains whose matrices each keep the relative error E (`comera train hf:FOLDER --method comera --tt-error E`): the accuracy
on the validation rows right away (0 steps), and after TUNING steps of fine-tuning at a fifth of the learning rate, early stage, ranks
fixed. A line of results a run lies beside the store; what is there is left out.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
SEEDS, STEPS, TUNING = (1, 2, 3), 1200, 300
ERRORS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
MODES = [f"model.tt.{kind}.{side}=[]" for kind in ("attention", "ffn_in", "ffn_out", "classifier", "embedding") for side in ("in_modes", "out_modes")]
MODEL = ["model.classes=2", "model.length=48", "model.encoder.layers=3", "model.encoder.d_model=256", "model.encoder.heads=4", "model.encoder.d_ff=1024",
         "model.encoder.positions=48", *MODES, "model.tt.embedding.ranks=[]"]
DATA = ["data.set=sst2-vader", "data.pack=true", "data.token_budget=1024"]
COURSE = ["train.batch=32", "train.schedule=linear", "train.warmup=100", "train.eval_every=0", "train.checkpoint_every=0", "train.checkpoint_minutes=0"]
TUNED = ["train.lr=1e-4", "train.lr_core=1e-4", "train.lr_rank=0", "method.comera.train_ranks=false"]


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
    return {"run": done["run"], "accuracy": done["metrics"]["val_accuracy"], "entries": done["size"]["model_entries"], "ratio": done["size"]["model_compression"]}


def run(args):
    results = Results(args.store)
    for seed in SEEDS:
        dense = results.of(f"dense-{seed}", lambda: train(args, "encoder6-mnli", "--method", "adamw", "--steps", STEPS, "--seed", seed,
                                                          *sets(MODEL, DATA, COURSE, ["train.lr=5e-4"])))
        folder = args.store.with_name(f"{args.store.stem}-{seed}")
        if not folder.exists():
            comera("export", dense["run"], "--to", "huggingface", "-o", folder, "--store", args.store)
        for error in args.errors:
            def made(steps):
                return train(args, f"hf:{folder}", "--method", "comera", "--tt-error", error, "--steps", steps, "--seed", seed,
                             *sets(DATA, COURSE, TUNED, ["model.length=48"], MODES))
            results.of(f"cut-{error:g}-{seed}", lambda: made(0))
            results.of(f"tuned-{error:g}-{seed}", lambda: made(TUNING))


def rows_of(args):
    """(label, share of the dense values, accuracies cut, accuracies tuned), the dense model first."""
    known = Results(args.store).known
    of = lambda name: [known[f"{name}-{seed}"] for seed in SEEDS if f"{name}-{seed}" in known]
    dense = of("dense")
    rows = [("dense", 1.0, [r["accuracy"] for r in dense], [])]
    for error in args.errors:
        cut, tuned = of(f"cut-{error:g}"), of(f"tuned-{error:g}")
        if cut:
            rows.append((f"{error:g}", statistics.mean(1 / r["ratio"] for r in cut), [r["accuracy"] for r in cut], [r["accuracy"] for r in tuned]))
    return rows


def spread(values):
    if not values:
        return ""
    return f"{100 * statistics.mean(values):.1f}" + (f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else "")


def table(args):
    print("| Relative error of each matrix | Values, of the dense model's | Accuracy at once, % | After fine-tuning, % |\n|---|---|---|---|")
    for label, share, cut, tuned in rows_of(args):
        print(f"| {label} | {share:.3f} | {spread(cut)} | {spread(tuned)} |")


def draw(args):
    rows = rows_of(args)
    width, height, edge = 760, 420, 60
    low = min(statistics.mean(v) for _, _, cut, tuned in rows for v in (cut, tuned) if v) - 0.02
    high = max(statistics.mean(v) for _, _, cut, tuned in rows for v in (cut, tuned) if v) + 0.02
    most = max(share for _, share, _, _ in rows)
    x = lambda share: edge + (width - 2 * edge) * share / most
    y = lambda accuracy: height - edge - (height - 2 * edge) * (accuracy - low) / (high - low)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
             '<rect width="100%" height="100%" fill="white"/>']
    dense = statistics.mean(rows[0][2])
    parts.append(f'<path d="M{edge} {y(dense):.1f}H{width - edge}" stroke="#888" stroke-dasharray="5 4"/><text x="{edge + 4}" y="{y(dense) - 6:.1f}">dense</text>')
    for at, color, words in ((2, "#3060a0", "at once"), (3, "#d06020", "after fine-tuning")):
        points = sorted((x(row[1]), y(statistics.mean(row[at])), row[0]) for row in rows[1:] if row[at])
        parts.append(f'<polyline fill="none" stroke="{color}" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points) + '"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{color}"/>' for a, b, _ in points]
        parts.append(f'<text x="{width - edge - 130}" y="{height - edge - 40 + 18 * (at - 2)}" fill="{color}">{words}</text>')
        if at == 3:
            parts += [f'<text x="{a:.1f}" y="{b - 8:.1f}" text-anchor="middle">{label}</text>' for a, b, label in points]
    for i in range(5):
        accuracy, share = low + (high - low) * i / 4, most * i / 4
        parts.append(f'<text x="{edge - 8}" y="{y(accuracy) + 4:.1f}" text-anchor="end">{100 * accuracy:.0f}</text>')
        parts.append(f'<text x="{x(share):.1f}" y="{height - edge + 18}" text-anchor="middle">{share:.2f}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">values, of the dense model\'s</text><text x="10" y="24">validation accuracy, %; labels: relative error of each matrix</text></svg>')
    print("\n".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "draw"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--errors", nargs="+", type=float, default=ERRORS)
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table, "draw": draw}[args.what](args)


main()
