#!/usr/bin/env python3
"""Loads model folders into the transformers library and compares their logits: a folder that it wrote, and the same after `comera import` and
`comera export RUN --to huggingface`.

    comera import FOLDER --store s.db               # prints RUN
    comera export RUN --to huggingface -o BACK --store s.db
    python3 transformers_reads.py FOLDER BACK [FOLDER BACK ...]

Needs torch and transformers. Prints the largest difference of a logit, which must be 0 for folders in float32.
"""
import json
import sys
from pathlib import Path

import torch
import transformers


def model_of(folder):
    name = json.loads((Path(folder) / "config.json").read_text())["architectures"][0]
    return getattr(transformers, name).from_pretrained(folder).eval()


def inputs_of(config):
    if hasattr(config, "image_size"):
        size = config.image_size
        return {"pixel_values": torch.rand(4, config.num_channels, *(size if isinstance(size, (list, tuple)) else (size, size)))}
    return {"input_ids": torch.randint(3, config.vocab_size, (4, 7))}


def main():
    folders = sys.argv[1:]
    if not folders or len(folders) % 2:
        sys.exit(__doc__)
    torch.manual_seed(1)
    worst = 0.0
    for first, second in zip(folders[::2], folders[1::2]):
        a, b = model_of(first), model_of(second)
        inputs = inputs_of(a.config)
        with torch.no_grad():
            difference = (a(**inputs).logits - b(**inputs).logits).abs().max().item()
        worst = max(worst, difference)
        print(f"{type(a).__name__}: largest difference of a logit {difference:g}")
    sys.exit(0 if worst == 0 else 1)


main()
