#!/usr/bin/env python3
"""Strong and weak scaling from one core to two on this machine: one process on one core, two processes on a core each, and one process with two
threads, in turns. A table of speeds against the first.

    experiments/processes/measure.py BINARY [--rounds 5] [--case PRESET:METHOD:BATCH:STEPS...]     on an idle machine"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

CASES = ["encoder2-nli:comera:8:40", "encoder2-nli:adamw:8:20", "mlp-fashion:comera:128:300", "mlp-fashion:adamw:128:300"]
ONE_CORE = ["taskset", "-c", "0"]
TWO = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--bind-to", "core", "--map-by", "core", "-n", "2"]


def step_ms(launch, binary, case, batch, threads):
    preset, method, _, steps = case.split(":")
    with tempfile.TemporaryDirectory() as folder:
        command = [*launch, binary, "train", preset, "--method", method, "--steps", steps, "--store", f"{folder}/runs.db", "--quiet", "--json"]
        for pair in (f"train.batch={batch}", f"train.threads={threads}", "train.eval_every=0", "train.checkpoint_every=0", "train.max_steps_per_s=0", "data.validation_rows=8"):
            command += ["--set", pair]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    assert result["status"] == "finished"
    return result["step_ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", nargs="+", default=CASES)
    args = parser.parse_args()
    print("| preset, method, batch | one core, ms | two processes, strong: speed | weak: speed | one process, two threads: speed |\n|---|---|---|---|---|", flush=True)
    for case in args.case:
        preset, method, batch, _ = case.split(":")
        batch, rounds = int(batch), []
        for _ in range(args.rounds):
            alone = step_ms(ONE_CORE, args.binary, case, batch, 1)
            strong, weak = step_ms(TWO, args.binary, case, batch, 1), step_ms(TWO, args.binary, case, 2 * batch, 1)
            threads = step_ms([], args.binary, case, batch, 2)
            rounds.append((alone, alone / strong, 2 * alone / weak, alone / threads))
        alone, *speeds = zip(*rounds)
        cells = [f"{statistics.median(s):.2f} ({min(s):.2f} to {max(s):.2f})" for s in speeds]
        print(f"| {preset}, {method}, {batch} | {statistics.median(alone):.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
