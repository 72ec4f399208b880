"""Matching docstrings to functions: pre-training on the true pairs, then a classifier on true and false ones. Needs PyPI's tokenizers.

    comera data get code-python-search
    python3 experiments/methods/docstrings.py prepare FOLDER
    python3 experiments/methods/docstrings.py train FOLDER [--seed N] [--steps 8000 8000 5000] [--set path=value ...]
    python3 experiments/methods/docstrings.py compare FOLDER [--seeds 1 2 3] [--tuning 2400 600]    # the classifier under several methods, after train
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess

COMERA = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "comera"
SET = pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share") / "comera" / "data" / "code-python-search"
TOKENS = 8192
DRAWS = 4  # false docstrings for each function
DENSE = {"dense": ["--method", "adamw"], "adam8bit": ["--method", "adam8bit"],
         "galore": ["--method", "galore", "--set", "method.galore.rank=64", "--set", "method.galore.scale=1"],
         "lora": ["--method", "lora", "--set", "method.lora.rank=16", "--set", "train.lr=0.002"]}
COMPRESSIONS = (4, 10)


def rows(split):
    return [json.loads(line) for line in open(SET / f"{split}.jsonl", encoding="utf-8")]


def write(path, found):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")


def false_pairs(true, generator):
    """A docstring of another function for each one, drawn DRAWS times, and the true one as often."""
    found = []
    for _ in range(DRAWS):
        order = list(range(len(true)))
        generator.shuffle(order)
        for row, other in zip(true, order):
            if true[other]["docstring"] == row["docstring"]:
                other = (other + 1) % len(true)
            found += [{**row, "docstring": true[other]["docstring"], "label": 0}, {**row, "label": 1}]
    generator.shuffle(found)
    return [{key: row[key] for key in ("docstring", "code", "label")} for row in found]


def prepare(folder):
    from tokenizers import BertWordPieceTokenizer

    true = {split: [row for row in rows(split) if row["label"] == 1] for split in ("train", "dev")}
    # Words in lower case, split at underscores: a word of a docstring and the same one in a name are the same token.
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator((row[key] for row in true["train"] for key in ("docstring", "code")), vocab_size=TOKENS, min_frequency=2)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    for split, found in true.items():
        write(folder / "true" / f"{split}.jsonl", [{"text": f"{row['docstring']} [SEP] {row['code']}"} for row in found])
    write(folder / "pairs" / "train.jsonl", false_pairs(true["train"], random.Random(5)))
    for split in ("dev", "test"):
        shutil.copy(SET / f"{split}.jsonl", folder / "pairs")


def settings(**values):
    return [word for name, value in values.items() for word in ("--set", f"{name.replace('__', '.')}={value}")]


def comera(*words):
    subprocess.run([COMERA, *map(str, words)], check=True)


def classifier(folder, source, store, name, seed, steps, lr, every, *words, warmup=200):
    """Trains the classifier from a model folder, and counts on the test set."""
    comera("train", f"hf:{source}", "--data", folder / "pairs", "--task", "classify", "--store", store, "--name", name, "--seed", seed, "--steps", steps,
           *settings(train__lr=lr, train__warmup=warmup, model__encoder__dropout=0.1, data__validation_rows=2000, train__eval_every=every), *words)
    comera("eval", name, "--store", store, "--split", "test")


def common(sets):
    return settings(train__batch=32, model__length=64, train__schedule="linear", train__clip_norm=1, **dict(each.split("=", 1) for each in sets))


def train(folder, seed, steps, sets):
    store = folder / f"seed-{seed}.db"
    of_texts = settings(data__text_column="text", data__join="false", data__validation_rows=1000, train__eval_every=500)
    comera("train", "codebert-python", "--method", "adamw", "--store", store, "--name", "first", "--seed", seed, "--steps", steps[0],
           *settings(data__set=folder / "true", data__vocab=folder / "tokenizer.json", train__lr=0.0005, train__warmup=400), *of_texts, *common(sets))
    comera("export", "first", "--store", store, "--to", "huggingface", "-o", folder / f"first-{seed}")
    comera("train", f"hf:{folder / f'first-{seed}'}", "--data", folder / "true", "--task", "mlm", "--method", "adamw", "--store", store, "--name",
           "second", "--seed", seed + 1, "--steps", steps[1], *settings(data__mask_share=0.3, train__lr=0.0006, train__warmup=400), *of_texts, *common(sets))
    comera("export", "second", "--store", store, "--to", "huggingface", "-o", folder / f"second-{seed}")
    classifier(folder, folder / f"second-{seed}", store, "matching", seed, steps[2], 0.0003, 367, "--method", "adamw", *common(sets))


def compare(folder, seeds, tuning, sets):
    """Dense methods from the model of `train`, and tensor trains of what AdamW makes there, X times smaller, trained on with fixed ranks."""
    store = folder / "compare.db"
    for seed in seeds:
        for name, words in DENSE.items():
            classifier(folder, folder / "second-1", store, f"{name}-{seed}", seed, tuning[0], 0.0003, 400, *common(sets), *words)
        matched = folder / f"matched-{seed}"
        comera("export", f"dense-{seed}", "--store", store, "--to", "huggingface", "-o", matched)
        for compression in COMPRESSIONS:
            classifier(folder, matched, store, f"comera-{compression}-{seed}", seed, tuning[1], 0.0002, 200, "--method", "comera", "--tt-compression",
                       compression, "--tt-gradients", 64, *settings(train__lr_core=0.0002, method__comera__train_ranks="false"),
                       *common(sets), warmup=50)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("prepare", "train", "compare"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, nargs=3, default=(8000, 8000, 5000))
    parser.add_argument("--seeds", type=int, nargs="*", default=(1, 2, 3))
    parser.add_argument("--tuning", type=int, nargs=2, default=(2400, 600), help="steps of dense methods, and of tensor trains")
    parser.add_argument("--set", nargs="*", default=[])
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.what == "prepare":
        prepare(folder)
    elif options.what == "compare":
        compare(folder, options.seeds, options.tuning, options.set)
    else:
        train(folder, options.seed, options.steps, options.set)


if __name__ == "__main__":
    main()
