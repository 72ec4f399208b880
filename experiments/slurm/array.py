#!/usr/bin/env python3
"""A sweep as an array job of Slurm against the same sweep without: metrics value for value, weights byte for byte.

    source FOLDER/environment; experiments/slurm/array.py BINARY PLACE     PLACE: a new folder for stores and logs

Two tasks at once; one is requeued while it trains and continues from its checkpoint."""
import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys
import time

binary, place = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
place.mkdir(parents=True)
SWEEP = {"base": "demo", "set": {"train.steps": 600, "train.max_steps_per_s": 100, "train.warmup": 50, "train.threads": 1, "train.checkpoint_every": 100},
         "grid": {"train.lr": [1e-3, 3e-3], "method": ["comera", "adamw", "galore"]}, "seeds": [1, 2]}
file = place / "array.json"
file.write_text(json.dumps(SWEEP))


def comera(*arguments):
    began = time.monotonic()
    result = subprocess.run([binary, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout), time.monotonic() - began


def query(store, sql):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def metrics(store, run):
    return [row for row in query(store, f"SELECT metric, step, value FROM run_metrics WHERE id = '{run}' ORDER BY 1, 2") if not row[0].endswith(("_ms", "_bytes"))]


def tensors(store, run):
    path, = query(store, f"SELECT path FROM checkpoints JOIN runs USING(run) WHERE id = '{run}' ORDER BY checkpoints.step DESC LIMIT 1")[0]
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    return {name: (entry["shape"], data[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}


def runs_of(document):
    return {run["name"]: run for point in document["points"] for run in point["runs"]}


direct, direct_s = comera("sweep", file, "--jobs", 2, "--store", place / "direct.db")
written, _ = comera("sweep", file, "--slurm", place / "tasks", "--jobs", 2)
began = time.monotonic()
job = subprocess.run(["sbatch", "--parsable", written["script"]], check=True, capture_output=True, text=True).stdout.strip()
while "RUNNING" not in subprocess.run(["squeue", "-h", "-j", f"{job}_0", "-o", "%T"], check=True, capture_output=True, text=True).stdout:
    time.sleep(0.2)
time.sleep(3)
subprocess.run(["scontrol", "requeue", f"{job}_0"], check=True)
while subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True).stdout.strip():
    time.sleep(1)
array_s = time.monotonic() - began
stores = sorted((place / "tasks").glob("*.db"))
merged = place / "merged.db"
first, import_s = comera("import", *stores, "--store", merged)
second, _ = comera("import", *stores, "--store", merged)
table, table_s = comera("sweep", file, "--store", merged)

home = {run: store for store in stores for run, in query(store, "SELECT id FROM runs")}
ours, theirs = runs_of(direct), runs_of(table)
values = differing = weights = 0
for name, run in ours.items():
    a, b = metrics(place / "direct.db", run["run"]), metrics(merged, theirs[name]["run"])
    values += len(a)
    differing += len(set(a) ^ set(b))
    weights += tensors(place / "direct.db", run["run"]) == tensors(home[theirs[name]["run"]], theirs[name]["run"])
resumed = [(store.name, step) for store in stores for step, in query(store, "SELECT step FROM events WHERE kind = 'resume'")]
print(json.dumps({"tasks": written["tasks"], "job": job, "direct_s": round(direct_s, 1), "array_s": round(array_s, 1), "stores": len(stores), "imported": len(first["runs"]),
                  "import_s": round(import_s, 2), "imported_again": len(second["runs"]), "already_here": sum("already here" in note for note in second["notes"]), "table_s": round(table_s, 2), "resumed": resumed,
                  "values_compared": values, "values_differing": differing, "runs_with_equal_weights": weights, "runs": len(ours),
                  "same_table": [[point["settings"], point["value"]] for point in direct["points"]] == [[point["settings"], point["value"]] for point in table["points"]]}, indent=1))
for point in table["points"]:
    print(point["settings"], point["value"])
