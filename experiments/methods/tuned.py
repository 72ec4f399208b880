"""Every method on a network of 10 million dense parameters, image or text: learning rate tuned for each on validation rows, then three
seeds. Accuracy, memory by purpose and step time against dense AdamW of the same run.

    ./run.sh data get fashion-mnist sst2-vader
    python3 experiments/methods/tuned.py run   --store tuned.db --set image [--methods NAME...] [--seeds 1 2 3]
    python3 experiments/methods/tuned.py table --store tuned.db --set image > table.md

`run` leaves out what is there already (results lie beside the store), so it may be stopped and started again. The rate: from RATE on, up
and down GRID while the validation accuracy of a shorter run with seed 1 gets better; all rates of a method (matrices, cores, ranks) are
equal. Steps, batch, schedule and network are the same for all, ranks are the defaults of the program.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
GRID = [m * 10.0**e for e in range(-5, 1) for m in (1, 3)]  # 1e-5, 3e-5 ... 1, 3
RATE, TUNING = 1e-3, 0.4  # the first one tried; steps of a tuning run, of the whole
NETWORKS = {  # preset, settings, steps
    "image": ("mlp-fashion", ["model.mlp.hidden=[2048,2048,2048]", "model.mlp.dropout=0.1", "train.batch=64"], 1500),
    "text": ("encoder6-mnli", ["model.classes=2", "model.length=48", "model.encoder.layers=3", "model.encoder.d_model=256", "model.encoder.heads=4",
                               "model.encoder.d_ff=1024", "data.set=sst2-vader", "data.pack=true", "data.token_budget=1024", "train.batch=32",
                               *[f"model.tt.{kind}.{modes}=[]" for kind in ("attention", "ffn_in", "ffn_out", "classifier", "embedding") for modes in ("in_modes", "out_modes")],
                               "model.tt.embedding.ranks=[]"], 1500),
}
COURSE = ["train.schedule=linear", "train.warmup=100", "train.lr_rank_late=0", "train.eval_every=0", "train.checkpoint_every=0", "train.checkpoint_minutes=0"]
RATES = ("train.lr", "train.lr_core", "train.lr_rank")


def comera(*args):
    done = subprocess.run([str(COMERA), *map(str, args), "--json", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr


def all_methods(network):
    preset, sets, _ = NETWORKS[network]
    status, plan, problem = comera("plan", preset, "--all-methods", *[x for s in sets for x in ("--set", s)])
    if status != 0:
        sys.exit(problem)
    return [row["method"] for row in plan["methods"]]


class Results:
    def __init__(self, store, network):
        self.store, self.network, self.folder = store, network, store.parent / (store.stem + "-results")
        self.folder.mkdir(exist_ok=True)

    def of(self, method, rate, seed, steps, train=True):
        """The result of one run, trained if it is not there; None where it is not there and must not be trained."""
        note = self.folder / f"{self.network}-{method}-{rate:g}-{seed}-{steps}.json"
        if note.exists():
            return json.loads(note.read_text())
        if not train:
            return None
        preset, sets, _ = NETWORKS[self.network]
        sets = [*sets, *COURSE, *[f"{path}={rate:g}" for path in RATES]]
        status, document, problem = comera("train", preset, "--method", method, "--seed", seed, "--steps", steps, "--store", self.store, "--name",
                                           note.stem, "--tag", "tuned", *[x for s in sets for x in ("--set", s)])
        result = {"method": method, "rate": rate, "seed": seed, "steps": steps, "accuracy": 0.0, "problem": problem.strip().split("\n")[0] if status else ""}
        if status == 0:
            memory = document["memory"]
            result |= {"accuracy": document["metrics"]["val_accuracy"], "run": document["run"], "planned": memory["planned_peak_bytes"],
                       "taken": memory["measured_peak_bytes"], "purposes": memory["planned_by_purpose"], "step_ms": document["step_ms"]["median"]}
        elif "diverged" not in problem and "NaN" not in problem:
            sys.exit(f"{note.stem}: {problem}")
        note.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{note.stem}: {100 * result['accuracy']:.2f} % {result['problem']}", flush=True)
        return result

    def best_rate(self, method, train=True):
        steps = int(TUNING * NETWORKS[self.network][2])
        score = lambda at: (r := self.of(method, GRID[at], 1, steps, train)) and r["accuracy"] or 0.0
        best = at = GRID.index(RATE)
        for way in (1, -1):
            at = best
            while 0 <= at + way < len(GRID) and score(at + way) > score(best):
                best = at = at + way
        return GRID[best]


def run(args):
    results = Results(args.store, args.set)
    steps = NETWORKS[args.set][2]
    for method in args.methods or all_methods(args.set):
        rate = results.best_rate(method)
        for seed in args.seeds:
            results.of(method, rate, seed, steps)


def table(args):
    results = Results(args.store, args.set)
    steps, rows = NETWORKS[args.set][2], []
    for method in args.methods or all_methods(args.set):
        rate = results.best_rate(method, train=False)
        runs = [r for seed in args.seeds if (r := results.of(method, rate, seed, steps, train=False))]
        if runs:
            rows.append((method, rate, runs))
    dense = next((statistics.median(r["step_ms"] for r in runs) for method, _, runs in rows if method == "adamw"), None)
    print("| Method | Rate | Validation accuracy | Peak, planned = taken, MiB | Step, against AdamW |\n|---|---|---|---|---|")
    for method, rate, runs in sorted(rows, key=lambda row: -statistics.mean(r["accuracy"] for r in row[2])):
        good = [r for r in runs if not r["problem"]]
        accuracy = [100 * r["accuracy"] for r in good]
        if not good:
            print(f"| {method} | {rate:g} | {runs[0]['problem']} | | |")
            continue
        spread = f" ± {statistics.stdev(accuracy):.2f}" if len(accuracy) > 1 else ""
        if any(r["planned"] != r["taken"] for r in good):
            sys.exit(f"{method}: planned is not taken")
        step = statistics.median(r["step_ms"] for r in good)
        print(f"| {method} | {rate:g} | {statistics.mean(accuracy):.2f}{spread} % of {len(runs)} | {good[0]['taken'] / 2**20:.1f} | {f'{step / dense:.2f}' if dense else f'{step:.1f} ms'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--set", choices=NETWORKS, required=True)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table}[args.what](args)


main()
