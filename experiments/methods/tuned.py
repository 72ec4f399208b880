"""Every method on a network of 10 million dense parameters, for images or running text (a language model): learning rate tuned
for each on validation rows, then three seeds. Accuracy or perplexity, memory by purpose and step time against dense AdamW of the same run.

    ./run.sh data get fashion-mnist wordnet-text
    python3 experiments/methods/tuned.py run   --store tuned.db --set image [--methods NAME...] [--seeds 1 2 3] [--near FILE]
    python3 experiments/methods/tuned.py time  --store tuned.db --set image      # on an idle machine
    python3 experiments/methods/tuned.py table --store tuned.db --set image > table.md
    python3 experiments/methods/tuned.py draw  --store tuned.db --set image > pareto.svg

`run` and `time` leave out what is there already (a line of RESULTS each, by default beside the store), so they may be stopped and started
again, also from a RESULTS file of another machine: image.jsonl and language.jsonl have what these sets have trained, begun by 83950ab and 8aaaddd. The rate: from
RATE on (or from a method's best rate in the results that --near names), up and down GRID while the validation score of a shorter run with
seed 1 gets better; all rates of a method (matrices, cores, ranks) are equal. Steps, batch, schedule and network are the same for all, ranks are the defaults of the program.

`time` trains TIMED steps of each method, at the smallest rate, right behind BASE steps of dense AdamW, REPEATS times: the middle one of the ratios of
medians, without the first step, whose projections are all new; and the longest step after it. All runs refresh in the same steps, so the length of a
step is its smallest ratio to the median of its run: a pause of the machine does not count as a refresh.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
GRID = [m * 10.0**e for e in range(-5, 1) for m in (1, 3)]  # 1e-5, 3e-5 ... 1, 3
RATE, TUNING = 1e-3, 0.4  # the first one tried; steps of a tuning run, of the whole
TIMED, BASE, REPEATS = 62, 30, 3
NETWORKS = {  # preset, settings, steps, metric
    "image": ("mlp-fashion", ["model.mlp.hidden=[2048,2048,2048]", "model.mlp.dropout=0.1", "train.batch=256", "train.warmup=25"], 375,
              "val_accuracy"),
    "language": ("llama-10m", ["train.batch=2", "train.warmup=30", "data.validation_rows=256"], 300, "val_perplexity"),
}
COURSE = ["train.schedule=linear", "train.warmup=100", "train.lr_rank_late=0", "train.eval_every=0", "train.checkpoint_every=0", "train.checkpoint_minutes=0"]
# The setting of each method's gap between refreshes, and its value while steps are timed. The image network has three matrices: each is refreshed three times more, and the median step
# refreshes nothing. The language model has 56, of which one in four steps refreshes one at the default gap.
GAPS = {name: f"method.{name}.gap" for name in ("galore", "coap", "q-galore", "flora", "apollo", "grass")} | {"apollo-mini": "method.apollo.gap"}
GAP = {"image": 20, "language": 200}
OWN = {name: ["train.clip_norm=0"] for name in ("lomo", "adalomo")}  # whose gradients are gone before their norm is known
RATES = ("train.lr", "train.lr_core", "train.lr_rank")


def comera(*args):
    done = subprocess.run([str(COMERA), *map(str, args), "--json", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    document = json.loads(done.stdout) if done.stdout.strip() else {}
    return done.returncode, document, document.get("error", {}).get("message", done.stderr)


def all_methods(network):
    preset, sets = NETWORKS[network][:2]
    status, plan, problem = comera("plan", preset, "--all-methods", *[x for s in sets for x in ("--set", s)])
    if status != 0:
        sys.exit(problem)
    return [row["method"] for row in plan["methods"]]


def is_accuracy(network):
    return NETWORKS[network][3] == "val_accuracy"


def goodness(network, score):
    """More is better; a run without a score is the worst."""
    return float("-inf") if score is None else score if is_accuracy(network) else -score


def shown(network, score):
    return "-" if score is None else f"{100 * score:.2f} %" if is_accuracy(network) else f"perplexity {score:.3f}"


class Results:
    """Lines of JSON, one a result, by name."""

    def __init__(self, args):
        self.store, self.network = args.store, args.set
        self.file = args.results or args.store.with_suffix(".jsonl")
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.known = {line.pop("name"): line for line in map(json.loads, lines)}

    def add(self, name, result, words):
        self.known[name] = result
        with self.file.open("a") as out:
            out.write(json.dumps({"name": name} | result) + "\n")
        print(f"{name}: {words}", flush=True)

    def of(self, method, rate, seed, steps, train=True):
        """The result of one run, trained if it is not there; None where it is not there and must not be trained."""
        name = f"{self.network}-{method}-{rate:g}-{seed}-{steps}"
        if name in self.known:
            return self.known[name]
        if not train:
            return None
        preset, sets, _, metric = NETWORKS[self.network]
        sets = [*COURSE, *sets, *OWN.get(method, []), *[f"{path}={rate:g}" for path in RATES]]
        status, document, problem = comera("train", preset, "--method", method, "--seed", seed, "--steps", steps, "--store", self.store, "--name",
                                           name, "--tag", "tuned", *[x for s in sets for x in ("--set", s)])
        result = {"method": method, "rate": rate, "seed": seed, "steps": steps, "score": None, "problem": problem.strip().split("\n")[0] if status else ""}
        if status == 0:
            memory = document["memory"]
            result |= {"score": document["metrics"][metric], "run": document["run"], "planned": memory["planned_peak_bytes"],
                       "taken": memory["measured_peak_bytes"], "purposes": memory["planned_by_purpose"], "step_ms": document["step_ms"]["median"]}
        elif "the loss is" not in problem:  # it diverged
            sys.exit(f"{name}: {problem}")
        self.add(name, result, f"{shown(self.network, result['score'])} {result['problem']}")
        return result

    def best_rate(self, method, first=None):
        """From `first` on; without it the best of what is there."""
        steps = int(TUNING * NETWORKS[self.network][2])
        def score(at):
            result = self.of(method, GRID[at], 1, steps, train=first is not None)
            return goodness(self.network, result["score"] if result else None)
        if first is None:
            return GRID[max(range(len(GRID)), key=score)]
        best = at = GRID.index(first)
        for way in (1, -1):
            at = best
            while 0 <= at + way < len(GRID) and score(at + way) > score(best):
                best = at = at + way
        return GRID[best]


def first_rate(near, method):
    """The rate of a method's best run in these results, the longest runs first."""
    runs = [run for run in map(json.loads, near.read_text().splitlines()) if run.get("method") == method and run["score"] is not None] if near else []
    return max(runs, key=lambda run: (run["steps"], run["score"]))["rate"] if runs else RATE


def run(args):
    results = Results(args)
    steps = NETWORKS[args.set][2]
    for method in args.methods or all_methods(args.set):
        rate = results.best_rate(method, first_rate(args.near, method))
        for seed in args.seeds:
            results.of(method, rate, seed, steps)


def step_times(args, method, steps):
    """Milliseconds of each step after the first."""
    preset, sets = NETWORKS[args.set][:2]
    sets = [*COURSE, *sets, *OWN.get(method, []), *[f"{path}={GRID[0]:g}" for path in RATES]]
    if gap := GAPS.get(method.split("+")[0]):
        sets.append(f"{gap}={GAP[args.set]}")
    status, document, problem = comera("train", preset, "--method", method, "--steps", steps, "--store", args.store, "--tag", "time",
                                       *[x for s in sets for x in ("--set", s)])
    if status != 0:
        sys.exit(f"{method}: {problem}")
    return comera("get", document["run"], "--metric", "step_ms", "--store", args.store)[1]["values"][1:]


def time(args):
    results = Results(args)
    for method in args.methods or all_methods(args.set):
        name = f"time-{args.set}-{method}"
        if name in results.known:
            continue
        ratios, medians, courses = [], [], []
        for _ in range(REPEATS):
            base, own = statistics.median(step_times(args, "adamw", BASE)), step_times(args, method, TIMED)
            medians.append(statistics.median(own))
            ratios.append(medians[-1] / base)
            courses.append([ms / medians[-1] for ms in own])
        results.add(name, {"ratio": statistics.median(ratios), "median": statistics.median(medians), "longest": max(map(min, zip(*courses)))}, "timed")


def rows_of(args):
    """(method, rate, good runs, all runs, times or None) of every method with a run, the best first."""
    results = Results(args)
    rows = []
    for method in args.methods or all_methods(args.set):
        rate = results.best_rate(method)
        runs = [r for seed in args.seeds if (r := results.of(method, rate, seed, NETWORKS[args.set][2], train=False))]
        good = [r for r in runs if not r["problem"]]
        if any(r["planned"] != r["taken"] for r in good):
            sys.exit(f"{method}: planned is not taken")
        if runs:
            rows.append((method, rate, good, runs, results.known.get(f"time-{args.set}-{method}")))
    return sorted(rows, key=lambda row: -statistics.mean([goodness(args.set, r["score"]) for r in row[2]] or [float("-inf")]))


def table(args):
    purposes = {"Weights": ("tt_core", "dense_weight", "rank_vector"), "Gradients": ("gradient",), "Optimizer": ("optimizer",),
                "Activations and workspace": ("activation", "workspace")}
    print(f"| Method | Rate | {'Validation accuracy, %' if is_accuracy(args.set) else 'Validation perplexity'} | Peak, planned = taken, MiB | " + " | ".join(purposes) + " | Step, against AdamW | Longest, against median |")
    print("|---" * (6 + len(purposes)) + "|")
    for method, rate, good, runs, timed in rows_of(args):
        if not good:
            print(f"| {method} | {rate:g} | {runs[0]['problem']} " + "| " * (3 + len(purposes)) + "|")
            continue
        scores = [r["score"] * (100 if is_accuracy(args.set) else 1) for r in good]
        spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        cells = [method, f"{rate:g}", f"{statistics.mean(scores):.2f}{spread} ({len(good)} of {len(runs)})", f"{good[0]['taken'] / 2**20:.1f}",
                 *[f"{sum(good[0]['purposes'].get(p, 0) for p in parts) / 2**20:.2f}" for parts in purposes.values()]]
        if timed:
            cells += [f"{timed['ratio']:.2f}", f"{timed['longest']:.2f}"]
        print("| " + " | ".join(cells + [""] * (6 + len(purposes) - len(cells))) + " |")


def draw(args):
    """The score over peak memory, both of the table, as SVG; the methods that no other one beats in both are joined."""
    factor = 100 if is_accuracy(args.set) else -1  # up is better
    rows = [(method, statistics.mean(factor * r["score"] for r in good), good[0]["taken"] / 2**20) for method, _, good, _, _ in rows_of(args) if good]
    low, high = min(a for _, a, _ in rows), max(a for _, a, _ in rows)
    left, right = (math.log10(f(m for _, _, m in rows)) for f in (min, max))
    width, height, edge = 1000, 640, 70
    x = lambda mib: edge + (width - 2.6 * edge) * (math.log10(mib) - left) / max(1e-9, right - left)
    y = lambda accuracy: height - edge - (height - 2 * edge) * (accuracy - low) / max(1e-9, high - low)
    text = lambda px, py, words, more="": f'<text x="{px:.1f}" y="{py:.1f}" font-size="13" {more}>{words}</text>'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>']
    front = [row for row in rows if not any(o[1] >= row[1] and o[2] <= row[2] and o != row for o in rows)]
    parts.append('<polyline fill="none" stroke="#d06020" points="' + " ".join(f"{x(m):.1f},{y(a):.1f}" for _, a, m in sorted(front, key=lambda r: r[2])) + '"/>')
    taken = []  # places of labels: one that would cover another moves down
    for method, accuracy, mib in sorted(rows, key=lambda r: y(r[1])):
        py = y(accuracy) + 4
        while any(abs(py - oy) < 14 and abs(x(mib) - ox) < 8 * max(len(method), len(other)) for ox, oy, other in taken):
            py += 2
        taken.append((x(mib), py, method))
        on_front = any(method == row[0] for row in front)
        parts.append(f'<circle cx="{x(mib):.1f}" cy="{y(accuracy):.1f}" r="4" fill="{"#d06020" if on_front else "#3060a0"}"/>')
        moved = py - y(accuracy) - 4
        if moved > 4:
            parts.append(f'<path d="M{x(mib):.1f} {y(accuracy):.1f}L{x(mib) + 14:.1f} {py - 4:.1f}" stroke="#999" stroke-width="0.7"/>')
        parts.append(text(x(mib) + (16 if moved > 4 else 8), py, method))
    for mib in [m * 10**e // 10 for e in range(1, 5) for m in (10, 15, 20, 30, 50, 70)]:
        if left <= math.log10(mib) <= right:
            parts.append(text(x(mib), height - edge + 30, mib, 'text-anchor="middle"') + f'<path d="M{x(mib):.1f} {height - edge + 8}v6" stroke="black"/>')
    for i in range(5):
        accuracy = low + (high - low) * i / 4
        parts.append(text(edge - 14, y(accuracy) + 4, f"{abs(accuracy):.1f}", 'text-anchor="end"'))
    parts.append(text(width / 2, height - 16, "peak memory, MiB", 'text-anchor="middle"') + text(edge - 50, 30, "validation accuracy, %" if is_accuracy(args.set) else "validation perplexity, up is better"))
    print("\n".join(parts) + "</svg>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "time", "table", "draw"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--set", choices=NETWORKS, required=True)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--near", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    args = parser.parse_args()
    args.store = args.store.resolve()
    {"run": run, "time": time, "table": table, "draw": draw}[args.what](args)


main()
