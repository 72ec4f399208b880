"""Dense AdamW against CoMERA (early stage; late stage with targets 0.5 and 0.2) on three real data sets, from scratch,
in the same number of steps: accuracy, size, memory and time, each over several seeds.

    ./run.sh data get wordnet-nli sst2-vader fashion-mnist
    python3 experiments/accuracy/accuracy.py run   --store accuracy.db [--sets NAME...] [--seeds 1 2 3] [--core 0]
    python3 experiments/accuracy/accuracy.py table --store accuracy.db > table.md

`run` leaves out what the store has already, so it may be stopped and started again, and two may run side by side on
different cores and sets. Each run has one thread. The networks and their training are the JSON files beside this one;
dense and tensorised runs share all of it but what `DENSE` below says.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMERA = HERE.parents[1] / "build" / "bin" / "comera"
SETS = ("fashion-mnist", "sst2-vader", "wordnet-nli")
# The best learning rate and weight decay we found for the dense network; steps, batch and schedule are the same.
DENSE = {
    "fashion-mnist": ["train.lr_rest=1e-3"],
    "sst2-vader": ["train.lr_rest=5e-4", "method.adam.weight_decay=1"],
    "wordnet-nli": ["train.lr_rest=5e-4", "method.adam.weight_decay=1"],
}
LINE = {"fashion-mnist": 0.888, "sst2-vader": 0.780, "wordnet-nli": 0.490}  # test accuracy of the best simple model
LINE_IS = {"fashion-mnist": "multilayer perceptron 784-256-10", "sst2-vader": "TF-IDF and logistic regression", "wordnet-nli": "TF-IDF of both sentences and logistic regression"}
VARIANTS = ("dense AdamW", "CoMERA early", "CoMERA late 0.5", "CoMERA late 0.2")


def settings(data, variant):
    if variant == "dense AdamW":
        return ["method.weights=dense", *DENSE[data]]
    if variant == "CoMERA early":
        return ["method.comera.late_after=0"]
    return ["method.comera.target=" + variant.split()[-1]]


def comera(store, core, *args):
    command = [str(COMERA), *map(str, args), "--store", str(store), "--json", "--quiet"]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=(lambda: os.sched_setaffinity(0, {core})) if core is not None else None)
    out = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{out}")
    return json.loads(out), usage.ru_maxrss * 1024


def last_ms(store, core, document):
    """Median of the last 200 steps."""
    points, _ = comera(store, core, "get", document["run"], "--metric", "step_ms")
    return statistics.median(points["values"][-200:])


def run(args):
    for data in args.sets:
        for seed in args.seeds:
            for variant in VARIANTS:
                name = f"{data} | {variant} | {seed}"
                note = args.store.parent / (args.store.stem + "-results") / (name.replace(" | ", "-").replace(" ", "-") + ".json")
                if note.exists():
                    continue
                sets = [x for s in settings(data, variant) for x in ("--set", s)]
                document, resident = comera(args.store, args.core, "train", HERE / f"{data}.json", "--seed", seed, "--name", name, "--tag", "accuracy", *sets)
                test, _ = comera(args.store, args.core, "eval", document["run"], "--split", "test")
                result = {"data": data, "variant": variant, "seed": seed, "run": document["run"], "steps": document["step"], "val": document["metrics"]["val_accuracy"],
                          "test": test["accuracy"], "test_rows": test["examples"], "entries": document["size"]["entries"], "model_entries": document["size"]["model_entries"],
                          "peak": document["memory"]["measured_peak_bytes"], "now": document["memory"]["now_bytes"], "resident": resident, "seconds": document["elapsed_s"],
                          "step_ms": document["step_ms"]["median"], "last_ms": last_ms(args.store, args.core, document)}
                note.parent.mkdir(exist_ok=True)
                note.write_text(json.dumps(result, indent=1) + "\n")
                print(f"{name}: val {result['val']:.4f}, test {result['test']:.4f}, {result['entries']:,} entries, {result['seconds']:.0f} s", flush=True)


def table(args):
    results = [json.loads(path.read_text()) for path in sorted((args.store.parent / (args.store.stem + "-results")).glob("*.json"))]
    mib = lambda values: f"{statistics.mean(values) / 2**20:.1f}"
    for data in args.sets:
        rows = {variant: [r for r in results if (r["data"], r["variant"]) == (data, variant)] for variant in VARIANTS}
        if not rows["dense AdamW"]:
            continue
        dense = rows["dense AdamW"]
        mean = lambda variant, what: statistics.mean(r[what] for r in rows[variant])
        percent = lambda values: f"{100 * statistics.mean(values):.1f}" + (f" ({100 * min(values):.1f}-{100 * max(values):.1f})" if len(values) > 1 else "")
        print(f"\n## {data}\n\n{dense[0]['steps']:,} steps, {len(dense)} seeds, {dense[0]['test_rows']:,} test rows. Line to beat: {100 * LINE[data]:.1f} ({LINE_IS[data]}).\n")
        print("| method | held-back, % | test, % | against dense | trained values | of dense | training memory at the end, MiB | peak, MiB | resident, MiB | step at the end of its run, ms | run, s |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for variant in VARIANTS:
            r = rows[variant]
            if not r:
                continue
            gain = 100 * (mean(variant, "test") - mean("dense AdamW", "test"))
            share = mean("dense AdamW", "model_entries") / mean(variant, "model_entries")
            print(f"| {variant} | {percent([x['val'] for x in r])} | {percent([x['test'] for x in r])} | {gain:+.1f} | {round(mean(variant, 'model_entries')):,} | 1/{share:.1f} "
                  f"| {mib([x['now'] for x in r])} | {mib([x['peak'] for x in r])} | {mib([x['resident'] for x in r])} | {mean(variant, 'last_ms'):.2f} | {mean(variant, 'seconds'):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    parser.add_argument("--core", type=int, help="run on this core only")
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table}[args.what](args)


main()
