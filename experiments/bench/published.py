"""Step time of six encoders on a CPU: this program, the published CoMERA program and dense PyTorch, in turns, and the ratios of their medians.

    python3 experiments/bench/published.py FOLDER [--batch 8] [--rounds 3] [--threads 2]

FOLDER is a checkout of the published program (github.com/ziyangjoy/CoMERA); nothing of it is part of this tree. Needs PyTorch, and an idle
machine. The published step is that of its training (zero_grad, forward, losses, backward, AdamW), built by its own functions as on a GPU
(experiments/gpu/published_torch.py); the dense network has fused AdamW (experiments/gpu/dense_torch.py). Each case is a process of its own, and
the allocator of PyTorch's keeps its memory, which makes them faster. Also printed: the step against the time that its products would take at
the machine's rate for 2048 x 2048 x 2048 in PyTorch.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMERA = HERE.parents[1] / "build" / "bin" / "comera"
LENGTH, WORDS, STEPS, WARMUP = 128, 30522, 20, 3


def median_step(step):
    times = []
    for i in range(WARMUP + STEPS):
        begin = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times[WARMUP:])


def child(args):
    import torch
    from torch.nn import functional as F
    sys.path.insert(0, str(HERE.parent / "gpu"))
    torch.set_num_threads(args.threads)
    ids, ones = torch.randint(WORDS, (args.batch, LENGTH)), torch.ones((args.batch, LENGTH), dtype=torch.int)
    labels = torch.randint(3, (args.batch,))
    if args.case == "products":
        a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
        return 2 * 2048**3 / median_step(lambda: a @ b) / 1e6  # GFLOP/s
    if args.case == "published":
        import published_torch
        from torch.overrides import TorchFunctionMode

        class OnCpu(TorchFunctionMode):  # it asks for a GPU in places
            def __torch_function__(self, function, types, args=(), kwargs=None):
                here = lambda value: "cpu" if isinstance(value, str) and value == "cuda" else value
                return function(*map(here, args), **{name: here(value) for name, value in (kwargs or {}).items()})
        with OnCpu():
            trainer = published_torch.trainer_of(published_torch.load(args.folder), args.batch, "cpu")
        optimizer = trainer.optimizer

        def loss():
            logits = trainer.model(ids, mask=ones, seg=ones, config_forward=trainer.config_forward)
            return trainer.loss_fn(logits, labels) + 0.01 * trainer.rank_loss()
    else:
        import dense_torch
        torch.manual_seed(1)
        model = dense_torch.Classifier()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def loss():
            return F.cross_entropy(model(ids, ones), labels)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
    return median_step(step)


def ours(args):
    done = subprocess.run([COMERA, "bench", "step", "encoder6-mnli", "--steps", str(STEPS), "--json", "--quiet"] +
                          [x for s in (f"train.batch={args.batch}", "data.pack=false", f"train.threads={args.threads}") for x in ("--set", s)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def theirs(args, case):
    keep = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    done = subprocess.run([sys.executable, __file__, args.folder, "--case", case, "--batch", str(args.batch), "--threads", str(args.threads)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, env=os.environ | keep)
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", choices=("products", "published", "dense"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        return print(child(args))
    rate, times, gflop = theirs(args, "products"), {"ours": [], "published": [], "dense": []}, 0
    for _ in range(args.rounds):
        for case in ("published", "dense"):
            document = ours(args)
            gflop = document["gflop"]
            times["ours"].append(document["step_ms"]["median"])
            times[case].append(theirs(args, case))
    median = {case: statistics.median(values) for case, values in times.items()}
    print("| | step, ms: median (range) | against this program |\n|---|---|---|")
    for case, title in (("ours", "this program"), ("published", "published program"), ("dense", "dense PyTorch, fused AdamW")):
        print(f"| {title} | {median[case]:.1f} ({min(times[case]):.1f} to {max(times[case]):.1f}) | {median[case] / median['ours']:.2f} |")
    print(f"\n2048 x 2048 x 2048: {rate:.1f} GFLOP/s; the {gflop:.2f} GFLOP of a step would take {1000 * gflop / rate:.1f} ms: {median['ours'] * rate / gflop / 1000:.2f} times as long")


main()
