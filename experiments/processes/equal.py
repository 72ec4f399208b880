#!/usr/bin/env python3
"""Every preset and every method on 2, 3 and 4 processes against one process with as many parts of a batch: stored values, events, weights
and states of the optimizer, byte for byte. Prints a table.

    experiments/processes/equal.py BINARY PLACE presets [PRESET...]     PLACE: a new folder
    experiments/processes/equal.py BINARY PLACE methods [METHOD...]

Batches have four parts, so three processes share them unevenly. One thread a process: with more, some kernels of OpenBLAS round otherwise."""
import json
import pathlib
import subprocess
import sys

import stored

PARTS = ["--set", "train.micro_batches=4", "--set", "train.threads=1", "--set", "train.eval_every=0"]
STEPS = {"presets": 3, "methods": 30}


def names(binary, kind):
    if kind == "presets":
        return sorted(file.stem for file in (pathlib.Path(__file__).resolve().parents[2] / "assets" / "presets").glob("*.json"))
    plan = json.loads(subprocess.run([binary, "plan", "demo", "--all-methods", "--json"], check=True, capture_output=True).stdout)
    return [method["method"] for method in plan["methods"] if "refused" not in method]


def main():
    binary, place, kind, *chosen = sys.argv[1:]
    binary, place = pathlib.Path(binary).resolve(), pathlib.Path(place).resolve()
    place.mkdir(parents=True, exist_ok=True)
    store = place / f"{kind}.db"
    print(f"| {kind[:-1]} | 2 | 3 | 4 | values and events compared |\n|---|---|---|---|---|", flush=True)
    for name in chosen or names(binary, kind):
        backward = "lomo" in name  # they update during backward, which processes refuse; after it, their result is the same
        args = [name, *PARTS] if kind == "presets" else ["demo", "--method", name, *PARTS, "--edit", "10:train.lr=2e-3", *(["--set", "method.update=after"] if backward else [])]
        args += ["--steps", STEPS[kind]]
        problem = stored.train(1, binary, store, f"{name} 1", *args)
        if problem:
            print(f"| {name} | | | | not trained: {problem} |", flush=True)
            continue
        alone, cells = stored.content(store, f"{name} 1"), []
        for count in (2, 3, 4):
            problem = stored.train(count, binary, store, f"{name} {count}", *args)
            cells.append(problem or ("equal" if stored.content(store, f"{name} {count}") == alone else "DIFFERENT"))
        print(f"| {name} | {' | '.join(cells)} | {len(alone[0])} and {len(alone[1])} |", flush=True)


if __name__ == "__main__":
    main()
