"""Step time and memory of two programs, old and new, in pairs: each round runs both, one after the other, in turns first and second.

    python3 experiments/bench/pairs.py OLD NEW [--rounds 9] [--case PRESET[:key=value,...]...] [--old-set key=value...] [--new-set key=value...]

OLD and NEW may be the same program, with settings that only one of them has. A ratio is new / old of one round; the table shows their median and range, so what the machine does beside it falls out of both.
"""
import argparse
import json
import statistics
import subprocess

CASES = ["demo", "mlp-fashion", "encoder2-nli", "encoder6-mnli", "encoder6-mnli:method.stash=int8", "encoder2-nli:method.weights=dense"]
STEPS = {"demo": 400, "mlp-fashion": 200, "encoder2-nli": 30, "encoder6-mnli": 12}


def step(program, case, more):
    preset, _, sets = case.partition(":")
    command = [program, "bench", "step", preset, "--steps", str(STEPS.get(preset, 20)), "--warmup", "5", "--json", "--quiet"]
    for pair in [*filter(None, sets.split(",")), *more]:
        command += ["--set", pair]
    bench = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return bench["step_ms"]["median"], int(bench["memory"]["measured_bytes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--case", nargs="+", default=CASES)
    parser.add_argument("--old-set", nargs="+", default=[])
    parser.add_argument("--new-set", nargs="+", default=[])
    args = parser.parse_args()
    old_step, new_step = (lambda case: step(args.old, case, args.old_set)), (lambda case: step(args.new, case, args.new_set))
    print("| case | old, ms | new, ms | new / old, median (range) | memory, new - old |")
    print("|---|---|---|---|---|", flush=True)
    for case in args.case:
        rounds = []
        for i in range(args.rounds):
            if i % 2:
                new, old = new_step(case), old_step(case)
            else:
                old, new = old_step(case), new_step(case)
            rounds.append((old, new))
        ratios = [new[0] / old[0] for old, new in rounds]
        olds, news = (statistics.median(pair[i][0] for pair in rounds) for i in (0, 1))
        print(f"| {case} | {olds:.2f} | {news:.2f} | {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) "
              f"| {rounds[-1][1][1] - rounds[-1][0][1]:+,d} B |", flush=True)


if __name__ == "__main__":
    main()
