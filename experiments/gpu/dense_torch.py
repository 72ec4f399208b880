"""One training step of the dense six-encoder classifier in PyTorch on a CUDA device, as rows of check.sh's table.

    python3 experiments/gpu/dense_torch.py [--batch N] [--seconds N]

The network of the preset encoder6-mnli with dense matrices: d 768, 12 heads, feed-forward 3,072, 30,522 words, sequence 128,
post-norm, no dropout, fused AdamW. Eager in fp32, TF32 and bf16 autocast, compiled in bf16 at batch 64 (max-autotune is
left out: it takes minutes). Stops when the time is over and says what it left out.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

D, HEADS, FF, VOCAB, LENGTH, LAYERS, CLASSES = 768, 12, 3072, 30522, 128, 6, 3


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, FF), nn.Linear(FF, D)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        x = self.norm1(x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions, self.segments = nn.Embedding(VOCAB, D), nn.Embedding(512, D), nn.Embedding(2, D)
        self.norm = nn.LayerNorm(D)
        self.encoders = nn.Sequential(*(Encoder() for _ in range(LAYERS)))
        self.pool, self.head = nn.Linear(D, D), nn.Linear(D, CLASSES)

    def forward(self, ids, segments):
        x = self.words(ids) + self.positions.weight[:LENGTH] + self.segments(segments)
        return self.head(torch.tanh(self.pool(self.encoders(self.norm(x))[:, 0])))


def measure(batch, precision, compiled, steps=30, warmup=8):
    torch.backends.cuda.matmul.allow_tf32 = precision == "TF32"
    torch.manual_seed(1)
    model = Classifier().cuda()
    run = torch.compile(model, mode="reduce-overhead") if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids, segments = torch.randint(VOCAB, (batch, LENGTH), device="cuda"), torch.randint(2, (batch, LENGTH), device="cuda")
    labels = torch.randint(CLASSES, (batch,), device="cuda")
    for step in range(warmup + steps):
        if step == warmup:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
            begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(run(ids, segments).float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()  # once, behind all of them: the host runs ahead of the device, as it does in training
    return 1000 * (time.perf_counter() - begin) / steps, torch.cuda.max_memory_allocated() / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--batch", type=int, help="this batch alone (1, 32, 64 and 128)")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    for compiled in (False, True):
        for batch in [args.batch] if args.batch else (1, 32, 64, 128):
            # A compilation takes up to a minute, so it is measured where it pays most.
            for precision in ("fp32", "TF32", "bf16") if not compiled else ("bf16",) if batch == 64 else ():
                name = f"dense PyTorch {torch.__version__}, {precision}, {'compiled' if compiled else 'eager'}"
                if time.monotonic() + (40 if compiled else 8) > end:
                    print(f"| {name} | {batch} | skipped: no time left | |", flush=True)
                    continue
                try:
                    milliseconds, memory = measure(batch, precision, compiled)
                    print(f"| {name} | {batch} | {milliseconds:.3f} | {memory:.1f} |", flush=True)
                except Exception as error:  # one that fails is a row, not the end
                    print(f"| {name} | {batch} | failed: {str(error).splitlines()[0][:80]} | |", flush=True)
                torch.cuda.empty_cache()
                torch._dynamo.reset()


if __name__ == "__main__":
    main()
