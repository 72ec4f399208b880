"""Whether products in bf16 would pay on a CPU: PyTorch's, which are oneDNN's, against its products in f32, over the products of a step of
six encoders as tensor trains (1,024 tokens, rank 30) and dense. Operands are f32, as the program keeps them, so bf16 includes rounding them.

    python experiments/bench/bf16.py        # a Python with torch

A ratio below 1: bf16 is faster."""
import statistics
import time

import torch

SHAPES = {  # m, k, n
    "x L of a layer": (1024, 768, 30),
    "T1 R of a layer": (1024, 30, 768),
    "dL = x^T dT1": (768, 1024, 30),
    "scores of a head": (128, 32, 128),
    "dense, attention": (1024, 768, 768),
    "dense, feed-forward": (1024, 768, 3072),
}


def median(f, seconds=1.0):
    f()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    torch.set_num_threads(2)
    torch.manual_seed(1)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}\n")
    print("| product | m, k, n | f32, us | bf16, rounding included, us | bf16 alone, us | ratio | ratio alone | largest error / largest entry |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (m, k, n) in SHAPES.items():
        a, b = torch.randn(m, k), torch.randn(k, n)
        half_a, half_b = a.bfloat16(), b.bfloat16()
        f32 = median(lambda: a @ b)
        whole = median(lambda: (a.bfloat16() @ b.bfloat16()).float())
        alone = median(lambda: half_a @ half_b)
        exact = a.double() @ b.double()
        error = ((half_a @ half_b).double() - exact).abs().max() / exact.abs().max()
        print(f"| {name} | {m}, {k}, {n} | {f32 * 1e6:.0f} | {whole * 1e6:.0f} | {alone * 1e6:.0f} | {whole / f32:.2f} | {alone / f32:.2f} | {error:.4f} |")


main()
