#!/usr/bin/env python3
"""A sweep killed with SIGKILL at random moments until it ends, against an uninterrupted one: metrics and weights.

    experiments/slurm/kills.py BINARY PLACE [SEED]     PLACE: a new folder

Each time the sweep alone, one of its runs, or all of them are killed."""
import json
import os
import pathlib
import random
import sqlite3
import struct
import subprocess
import sys
import time

binary, place = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
place.mkdir(parents=True)
file = place / "kills.json"
file.write_text(json.dumps({
    "base": "demo", "set": {"train.max_steps_per_s": 150, "data.train_rows": 512, "data.validation_rows": 100, "train.checkpoint_every": 20, "train.eval_every": 20, "train.warmup": 5},
    "random": {"runs": 16, "seed": 3, "ranges": {"train.lr_core": {"log": [1e-4, 1e-2]}, "train.lr": {"log": [1e-4, 1e-2]}, "method": ["comera", "adamw"]}},
    "halving": {"metric": "val_loss", "rungs": [50, 100, 200], "keep": 0.5}}))


def command(store):
    return [binary, "sweep", file, "--jobs", "2", "--json", "--quiet", "--store", place / store]


def query(store, sql):
    with sqlite3.connect(f"file:{place / store}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def content(store, run):
    path, = query(store, f"SELECT path FROM checkpoints JOIN runs USING(run) WHERE id = '{run}' ORDER BY checkpoints.step DESC LIMIT 1")[0]
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    tensors = {name: (entry["shape"], data[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}
    return tensors, [row for row in query(store, f"SELECT metric, step, value FROM run_metrics WHERE id = '{run}' ORDER BY 1, 2") if not row[0].endswith(("_ms", "_bytes"))]


def runs_of(document):
    return {run["name"]: (run["run"], run["step"], point["rung"]) for point in document["points"] for run in point["runs"]}


whole = json.loads(subprocess.run(command("whole.db"), check=True, capture_output=True).stdout)
kills = {"sweep": 0, "run": 0, "all": 0}
while True:
    process = subprocess.Popen(command("killed.db"), stdout=subprocess.PIPE)
    try:
        out, _ = process.communicate(timeout=chance.uniform(0.2, 8))
        if process.returncode == 0:
            break
        continue  # a run was killed: the next start trains it
    except subprocess.TimeoutExpired:
        children = [int(pid) for pid in subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()]
    kind = chance.choice([*kills])
    for pid in {"sweep": [process.pid], "run": children[-1:], "all": [process.pid, *children]}[kind]:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    kills[kind] += 1
    if kind == "run":
        time.sleep(0.2)
        process.kill()
    process.communicate()
ended = json.loads(out)
ours, theirs = runs_of(whole), runs_of(ended)
same = [content("whole.db", ours[name][0]) == content("killed.db", theirs[name][0]) for name in ours]
print(json.dumps({"kills": kills, "runs": len(ours), "rows in the store": query("killed.db", "SELECT count(*) FROM runs")[0][0], "equal": sum(same),
                  "same rungs": {name: run[1:] for name, run in ours.items()} == {name: run[1:] for name, run in theirs.items()}}))
