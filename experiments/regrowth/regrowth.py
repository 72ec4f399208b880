"""The size target as a slider that works both ways: a run whose target goes 1.0 -> 0.3 -> 0.7 by live edits, beside one
that stays at 0.3 and one that goes to 0.7 at once. Same network, steps and data; needs no download (preset demo).

    python3 experiments/regrowth/regrowth.py run   --store regrowth.db [--seeds 1 2 3] [--core 0]
    python3 experiments/regrowth/regrowth.py table --store regrowth.db > table.md
    python3 experiments/regrowth/regrowth.py plot  --store regrowth.db > regrowth.svg

An edit is made by stopping a run and going on with `comera resume RUN --extend STEPS --set method.comera.target=...`, which
stores it as one made by hand in the window. `run` leaves out what the store has already and checks with
`comera reproduce` that the first run computes to the same bits again.
"""
import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
from pathlib import Path

COMERA = Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
# From which step on which target: the late stage begins with the first one.
COURSES = {"1.0 -> 0.3 -> 0.7": [(0, 1.0), (1500, 0.3), (5000, 0.7)], "1.0 -> 0.3": [(0, 1.0), (1500, 0.3)],
           "1.0 -> 0.7": [(0, 1.0), (1500, 0.7)]}
STEPS = 9000
# Rates stay as they are, so that a step is worth as much at the end as at the beginning. The late stage pushes with the
# published weight at the published loss target.
SETTINGS = ["train.schedule=constant", "train.lr_core=1e-3", "train.lr_rank=2e-3", "train.eval_every=250", "train.checkpoint_every=0",
            "train.threads=1", "method.comera.late_after=200", "method.comera.rank_weight=0", "method.comera.late_weight=1",
            "method.comera.loss_target=0.8",
            # The demo as it was on 2026-11-21.
            "data.set=fashion-mnist-demo",
            "model.mlp.hidden=[1024,512]", "model.tt.ffn_in.cores=3", "model.tt.ffn_in.rank=32", "train.batch=64", "train.warmup=100",
            "method.comera.mode=reference", "method.comera.late_canonical=false", "method.comera.floor_rank=false",
            "method.comera.late_loss_weight=0.1", "method.comera.late_halving=0", "train.lr_rank_late=0", "train.max_steps_per_s=0"]
SHOWN = (1500, 2500, 3500, 5000, 5001, 5250, 6000, 7500, STEPS)


def comera(args, *words):
    command = [str(COMERA), *map(str, words), "--store", str(args.store), "--json", "--quiet"]
    pin = (lambda: os.sched_setaffinity(0, {args.core})) if args.core is not None else None
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout}")
    return json.loads(done.stdout)


def run(args):
    db = sqlite3.connect(f"file:{args.store}?mode=ro", uri=True) if args.store.exists() else None
    done = {name for name, in db.execute(f"SELECT name FROM runs WHERE step = {STEPS}")} if db else set()
    for seed in args.seeds:
        for course, targets in COURSES.items():
            name = f"{course} | {seed}"
            if name in done:
                continue
            ends = [step for step, _ in targets[1:]] + [STEPS]
            sets = [word for setting in [*SETTINGS, f"method.comera.target={targets[0][1]}"] for word in ("--set", setting)]
            document = comera(args, "train", "demo", "--steps", ends[0], "--seed", seed, "--name", name, "--tag", "regrowth", *sets)
            for (begin, target), end in zip(targets[1:], ends[1:]):
                document = comera(args, "resume", document["run"], "--extend", end - begin, "--set", f"method.comera.target={target}")
            print(f"{name}: {document['size']['entries']:,} entries, {100 * document['metrics']['val_accuracy']:.1f} %", flush=True)
            if (course, seed) == (next(iter(COURSES)), args.seeds[0]):
                print("computed again:", "identical" if comera(args, "reproduce", document["run"])["identical"] else "NOT identical", flush=True)


class Stored:
    """One finished run, read from the store."""

    def __init__(self, db, name):
        self.db = db
        row = db.execute("SELECT run FROM runs WHERE name = ? AND step = ? ORDER BY created DESC LIMIT 1", (name, STEPS)).fetchone()
        if row is None:
            sys.exit(f"no finished run '{name}' in the store: make it with `run`")
        self.run = row[0]

    def metric(self, name):
        return self.db.execute("SELECT step, value FROM metrics JOIN metric_names USING(metric) WHERE run = ? AND name = ? ORDER BY step",
                               (self.run, name)).fetchall()

    def near(self, name, step):
        """The value at a step, or the last one before it."""
        return [value for at, value in self.metric(name) if at <= step][-1]

    def accuracy(self, step):
        """Mean of the four scores up to a step: 1,000 rows make each uncertain by a point."""
        return 100 * statistics.mean([value for at, value in self.metric("val_accuracy") if at <= step][-4:])

    def memory(self, step):
        """MiB of everything a training step holds."""
        return sum(self.db.execute("SELECT bytes FROM memory WHERE run = ? AND purpose = ? AND step <= ? ORDER BY step DESC LIMIT 1",
                                   (self.run, purpose, step)).fetchone()[0]
                   for purpose, in self.db.execute("SELECT DISTINCT purpose FROM memory WHERE run = ?", (self.run,)).fetchall()) / 2**20


def target_at(course, step):
    return [target for begin, target in COURSES[course] if begin < step][-1]


def table(args):
    db = sqlite3.connect(f"file:{args.store}?mode=ro", uri=True)
    first = next(iter(COURSES))
    one = Stored(db, f"{first} | {args.seeds[0]}")
    print(f"Course {first}, seed {args.seeds[0]}:\n")
    print("| step | target | size aimed at, entries | live entries | training memory, MiB | training loss, mean of 100 | held-back, % (mean of 4 scores) |")
    print("|---|---|---|---|---|---|---|")
    losses = dict(one.metric("train_loss"))
    for step in SHOWN:
        # Just after an edit: the mean over the steps since it.
        begin = max([edit for edit, _ in COURSES[first] if edit < step] + [step - 100])
        loss = statistics.mean(losses[at] for at in range(begin + 1, step + 1))
        print(f"| {step:,} | {target_at(first, step)} | {one.near('target_entries', step):,.0f} | {one.near('entries', step):,.0f} | {one.memory(step):.2f} "
              f"| {loss:.3f} | {one.accuracy(step):.1f} |")
    print(f"\nAll courses at step {STEPS:,}, {len(args.seeds)} seeds, mean (lowest to highest):\n")
    print("| course | live entries | training memory, MiB | held-back, % (mean of 4 scores) | held-back loss, mean of 4 | training loss, last 500 steps |")
    print("|---|---|---|---|---|---|")
    for course in COURSES:
        runs = [Stored(db, f"{course} | {seed}") for seed in args.seeds]
        span = lambda values, form: f"{statistics.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"
        last = lambda one, name, count: statistics.mean(value for _, value in one.metric(name)[-count:])
        print(f"| {course} | {span([r.near('entries', STEPS) for r in runs], ',.0f')} | {span([r.memory(STEPS) for r in runs], '.2f')} "
              f"| {span([r.accuracy(STEPS) for r in runs], '.1f')} | {span([last(r, 'val_loss', 4) for r in runs], '.3f')} "
              f"| {span([last(r, 'train_loss', 500) for r in runs], '.3f')} |")


def plot(args):
    """Two panels over steps, as SVG: live entries, and training loss (mean of 100 steps), a line a course."""
    db = sqlite3.connect(f"file:{args.store}?mode=ro", uri=True)
    width, height, left, gap = 640, 150, 60, 40
    colors = ("#2a6fdb", "#c2410c", "#15803d")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {2 * height + 3 * gap}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{2 * height + 3 * gap}" fill="white"/>']

    def binned(points):
        return [(points[i][0], statistics.mean(value for _, value in points[i:i + 100])) for i in range(0, len(points), 100)]

    panels = (("live TT entries", "entries", lambda points: [p for p in points if p[0] % 25 == 1]), ("training loss", "train_loss", binned))
    for panel, (title, metric, thin) in enumerate(panels):
        top = gap + panel * (height + gap)
        curves = [thin(Stored(db, f"{course} | {args.seeds[0]}").metric(metric)) for course in COURSES]
        high = max(value for curve in curves for _, value in curve)
        x = lambda step: left + (width - left - 20) * step / STEPS
        y = lambda value: top + height * (1 - value / high)
        out.append(f'<text x="{left}" y="{top - 6}" font-weight="bold">{title}</text>')
        for share in (0, 0.5, 1):
            out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(share * high):.1f}" y2="{y(share * high):.1f}" stroke="#ddd"/>')
            out.append(f'<text x="{left - 6}" y="{y(share * high) + 4:.1f}" text-anchor="end">{share * high:,.{0 if high > 10 else 1}f}</text>')
        for step in range(0, STEPS + 1, 1500):
            out.append(f'<text x="{x(step):.1f}" y="{top + height + 14}" text-anchor="middle" fill="#666">{step:,}</text>')
        for curve, color in reversed(list(zip(curves, colors))):
            out.append(f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{" ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in curve)}"/>')
    for i, (course, color) in enumerate(zip(COURSES, colors)):
        label = "target " + course.replace("->", "→")
        out.append(f'<text x="{left + 190 * i}" y="{2 * height + 2.75 * gap:.0f}" fill="{color}" font-weight="bold">{label}</text>')
    print("\n".join([*out, "</svg>"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "plot"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    parser.add_argument("--core", type=int, help="use this processor core only")
    args = parser.parse_args()
    {"run": run, "table": table, "plot": plot}[args.what](args)


if __name__ == "__main__":
    main()
