#!/usr/bin/env python3
"""Loads a model exported with `comera export RUN --to safetensors --names official` into the published PyTorch code with
load_state_dict(strict=True), and compares its logits with those of `comera predict`.

    official_state_dict.py MODEL.safetensors PREDICTIONS.jsonl PAIRS.tsv VOCAB.txt

PAIRS.tsv is what was predicted (MNLI columns). Needs torch and safetensors, and COMERA_REPO, a checkout of
ziyangjoy/CoMERA (8583b35); `common.py` of the peer benchmarks must be importable (PYTHONPATH)."""
import json
import os
import re
import sys
import unicodedata

import common
import torch
from safetensors.torch import load_file

model_path, predictions_path, pairs_path, vocab_path = sys.argv[1:5]
comera = common.load_comera(os.environ["COMERA_REPO"])
model = comera.utils.init_Transformer(emb_tensorized=True, encoder_tensorized=True, r=30, num_class=3, n_layers=6)
print("strict load:", model.load_state_dict(load_file(model_path), strict=True))
model.eval()
vocab = {line.rstrip("\n"): i for i, line in enumerate(open(vocab_path, encoding="utf8"))}


def tokens(text):
    text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    ids = []
    for word in re.findall(r"\w+|[^\w\s]", text.replace("_", " _ ")):
        at, pieces = 0, []
        while at < len(word):
            end = len(word)
            while end > at and (("##" if at else "") + word[at:end]) not in vocab:
                end -= 1
            if end == at:
                pieces = ["[UNK]"]
                break
            pieces.append(("##" if at else "") + word[at:end])
            at = end
        ids += [vocab[piece] for piece in pieces]
    return ids


rows = [line.rstrip("\n").split("\t") for line in open(pairs_path, encoding="utf8")]
first, second = rows[0].index("sentence1"), rows[0].index("sentence2")
worst, count = 0.0, 0
for row, line in zip(rows[1:], open(predictions_path)):
    a, b = tokens(row[first]), tokens(row[second])
    ids = [101] + a + [102] + b + [102]
    segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
    with torch.no_grad():
        out = model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.int), torch.tensor([segments]),
                    config_forward=comera.config_class(prune_mask=True, threshold=1e-2))
    out = out[0] if isinstance(out, (tuple, list)) else out
    ours = torch.tensor(json.loads(line)["logits"]).double()
    worst = max(worst, (out.double().flatten() - ours).abs().max().item())
    count += 1
print(f"{count} rows, largest difference of a logit {worst:.2e}")
