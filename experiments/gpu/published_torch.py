"""One training step of the published CoMERA program on a CUDA device, as rows of check.sh's table.

    python3 experiments/gpu/published_torch.py FOLDER [--batch N] [--seconds N]

FOLDER is a checkout of it (github.com/ziyangjoy/CoMERA); nothing of it is part of this tree. Its own functions build the
network (init_Transformer), split the parameters and capture the step (_build_graph); what is replayed is what its training
replays. fp32 as it ships, and TF32. What it imports and a step does not use (transformers, datasets, tqdm) is replaced where
it is not installed. Without a device three steps of one example are made on the CPU, which shows that it can be loaded.
"""
import argparse
import importlib.machinery
import sys
import time
import types

import torch

LENGTH, LAYERS, RANK = 128, 6, 30


class StandIn(types.ModuleType):
    def __init__(self, name):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)  # PyTorch asks for it

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: args[0] if args else None


def load(folder):
    for name in ("transformers", "datasets", "tqdm"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = StandIn(name)
    sys.path.insert(0, folder)
    import MNLI_trainer
    import utils

    return MNLI_trainer, utils


def trainer_of(program, batch, device):
    MNLI_trainer, utils = program
    torch.manual_seed(1)
    model = utils.init_Transformer(emb_tensorized=True, encoder_tensorized=True, r=RANK, num_class=3, n_layers=LAYERS).to(device)
    tensor, origin, rank = utils.split_tensor_rank_params(model)
    groups = [{"params": tensor, "lr": 1e-4}, {"params": origin, "lr": 5e-5}, {"params": rank, "lr": 1e-3}]
    trainer = object.__new__(MNLI_trainer.Transformer_MNLI_Trainer)  # its constructor wants data sets
    trainer.args = types.SimpleNamespace(batch_size=batch, max_len=LENGTH, emb_tensorized=True, prune_rank=True)
    trainer.gpu_id = 0
    trainer.model = model.train()
    trainer.optimizer = torch.optim.AdamW(groups, weight_decay=0)
    trainer.loss_fn = torch.nn.CrossEntropyLoss(ignore_index=-100)
    trainer._build_config_forward(trainer.args)
    return trainer


def measure(program, batch, tf32, steps=30, warmup=8):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.cuda.reset_peak_memory_stats()
    graph = trainer_of(program, batch, "cuda")._build_graph()[0]
    for step in range(warmup + steps):
        if step == warmup:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        graph.replay()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin) / steps, torch.cuda.max_memory_allocated() / 2**20


def step_on_the_cpu(program):
    trainer = trainer_of(program, 1, "cpu")
    ids, ones = torch.randint(30000, (1, LENGTH)), torch.ones((1, LENGTH), dtype=torch.int)
    for _ in range(3):
        trainer.optimizer.zero_grad(set_to_none=True)
        logits = trainer.model(ids, mask=ones, seg=ones, config_forward=trainer.config_forward)
        loss = trainer.loss_fn(logits, torch.tensor([1])) + 0.01 * trainer.rank_loss()
        loss.backward()
        trainer.optimizer.step()
        print(f"loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--batch", type=int, help="this batch alone (1, 32, 64 and 128)")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    program = load(args.folder)
    if not torch.cuda.is_available():
        return step_on_the_cpu(program)
    for batch in [args.batch] if args.batch else (1, 32, 64, 128):
        for tf32 in (False, True):
            name = f"published CoMERA, PyTorch {torch.__version__}, {'TF32' if tf32 else 'fp32'}, captured"
            if time.monotonic() + 15 > end:
                print(f"| {name} | {batch} | skipped: no time left | |", flush=True)
                continue
            try:
                milliseconds, memory = measure(program, batch, tf32)
                print(f"| {name} | {batch} | {milliseconds:.3f} | {memory:.1f} |", flush=True)
            except Exception as error:  # one that fails is a row, not the end
                print(f"| {name} | {batch} | failed: {str(error).splitlines()[0][:80]} | |", flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
