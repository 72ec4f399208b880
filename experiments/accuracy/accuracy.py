"""Dense AdamW against CoMERA (early stage; late stage with targets 0.5 and 0.2) on three real data sets, from scratch,
in the same number of steps: accuracy, size, memory and time, each over several seeds.

    ./run.sh data get wordnet-nli sst2-vader fashion-mnist
    python3 experiments/accuracy/accuracy.py run   --store accuracy.db [--sets NAME...] [--seeds 1 2 3] [--core 0]
    python3 experiments/accuracy/accuracy.py table --store accuracy.db > table.md
    python3 experiments/accuracy/accuracy.py course --store accuracy.db --run "fashion-mnist | CoMERA late 0.2 | 1"

`run` leaves out what the store has already, so it may be stopped and started again, and two may run side by side on
different cores and sets. Each run has one thread. The networks and their training are the JSON files beside this one;
SETTINGS says what each method adds.
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
# What each method adds to the JSON file of the set: the settings that we found best for it, tried on held-back rows with
# seed 1. Steps, batch, schedule and network are the same for all, but for the rank at the start.
PRUNE = ["method.comera.rank_weight=0", "method.comera.late_weight=0.1", "method.comera.late_after=1000"]
SELECT = ["method.comera.mode=selective", "method.comera.late_canonical=true", "method.comera.floor_rank=true", "method.comera.rank_weight=0", "method.comera.late_loss_weight=1",
          "method.comera.late_weight=2"]
RANKS = ["model.tt.embedding.rank=24", *[f"model.tt.{kind}.rank=32" for kind in ("attention", "ffn_in", "ffn_out", "classifier")]]
SETTINGS = {
    "fashion-mnist": {
        "dense AdamW": ["model.mlp.dropout=0.25"],
        "CoMERA early": ["model.mlp.dropout=0.3", "model.tt.ffn_in.cores=1", "model.tt.ffn_in.rank=80", "train.lr_core=5e-4", "train.lr_rank=5e-4"],
        "CoMERA late": ["model.mlp.dropout=0.1", "model.tt.ffn_in.cores=2", "model.tt.ffn_in.rank=160", "train.lr_core=2e-3", "train.lr_rank=4e-3",
                        "method.comera.loss_target=0.6", *PRUNE, "method.comera.late_weight=0.08"],
    },
    "sst2-vader": {
        "dense AdamW": ["train.lr=1e-3", "method.adam.weight_decay=0.3"],
        "CoMERA early": ["model.tt.embedding.rank=32"],
        "CoMERA late": [*SELECT, "model.tt.embedding.rank=32", "train.lr_core=8e-4", "train.lr_rank=4e-3", "model.encoder.dropout=0.02",
                        "model.encoder.attention_dropout=0.02", "method.comera.loss_target=0.4", "method.comera.late_after=600",
                        "method.comera.late_halving=500"],
    },
    "wordnet-nli": {
        "dense AdamW": ["train.lr=4e-4", "method.adam.weight_decay=1", "data.token_dropout=0.4"],
        "CoMERA early": ["train.lr_core=4e-4", "data.token_dropout=0.2", *RANKS],
        "CoMERA late": [*SELECT, "train.lr_core=5e-4", "train.lr_rank_late=4e-3", "data.token_dropout=0.1", *RANKS,
                        "method.comera.loss_target=0.9", "method.comera.late_after=1500", "method.comera.late_halving=1000"],
    },
}
LINE = {"fashion-mnist": 0.888, "sst2-vader": 0.780, "wordnet-nli": 0.490}  # test accuracy of the best simple model
LINE_IS = {"fashion-mnist": "multilayer perceptron 784-256-10", "sst2-vader": "TF-IDF and logistic regression", "wordnet-nli": "TF-IDF of both sentences and logistic regression"}
VARIANTS = ("dense AdamW", "CoMERA early", "CoMERA late 0.5", "CoMERA late 0.2")


def settings(data, variant):
    late = variant.startswith("CoMERA late")
    sets = SETTINGS[data]["CoMERA late" if late else variant]
    if late:
        return [*sets, "method.comera.target=" + variant.split()[-1]]
    return [*sets, "method.weights=dense"] if variant == "dense AdamW" else sets


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


def course(args):
    """Size, memory and step time over one stored run."""
    def query(sql):
        return [list(row.values()) for row in comera(args.store, None, "query", sql)[0]["rows"]]

    held = "AND purpose IN ('tt_core', 'gradient', 'optimizer')"
    one = f"(SELECT run FROM runs WHERE name = '{args.run}' ORDER BY created DESC LIMIT 1)"
    steps = query(f"SELECT max(step) FROM steps WHERE run = {one}")[0][0]
    print("| step | live TT entries | TT cores, gradients, moments in memory, KiB | all training memory, KiB | median step of the 500 before, ms |")
    print("|---|---|---|---|---|")
    for step in [500, *range(2000, steps, 2000), steps]:
        at = lambda purposes: query(f"SELECT sum(bytes) FROM memory m WHERE run = {one} AND step = (SELECT max(step) FROM memory WHERE run = m.run AND purpose = m.purpose AND step <= {step}) {purposes}")[0][0]
        entries = query(f"SELECT value FROM metrics JOIN metric_names USING(metric) WHERE run = {one} AND name = 'entries' AND step = {step}")[0][0]
        times = [row[0] for row in query(f"SELECT value FROM metrics JOIN metric_names USING(metric) WHERE run = {one} AND name = 'step_ms' AND step > {step - 500} AND step <= {step}")]
        print(f"| {step:,} | {entries:,.0f} | {at(held) / 1024:,.0f} | {at('') / 1024:,.0f} | {statistics.median(times):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "course"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    parser.add_argument("--core", type=int, help="run on this core only")
    parser.add_argument("--run", help="course: name of a stored run")
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "table": table, "course": course}[args.what](args)


main()
