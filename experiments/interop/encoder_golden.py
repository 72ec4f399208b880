#!/usr/bin/env python3
"""Makes tests/golden_models/distilbert_mlm, roformer_mlm and roformer_classifier: tiny random models as save_pretrained writes them, each with
what the library computes from it, in double: logits, loss, gradients, and the parameters after three steps of AdamW.

    encoder_golden.py OUT          needs torch, transformers and safetensors

The library keeps RoFormer's sines and cosines of positions in float32; here they are made in double."""
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

LR, STEPS, DECAY, BETAS, EPS = 0.002, 3, 0.02, (0.9, 0.98), 1e-7


def angles(positions, width):
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    turned = torch.arange(positions, dtype=torch.float64)[:, None] * rates
    return torch.cat([turned.sin(), turned.cos()], 1)


def make(out, name, kind, seed, config):
    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for parameter, value in model.named_parameters():
            if value.requires_grad:
                value.copy_(torch.randn(value.shape) * 0.1 + (1 if parameter.lower().endswith("norm.weight") else 0) if value.dim() == 1
                            else torch.randn(value.shape) * 0.3)
    folder = out / name
    model.save_pretrained(folder)
    model = model.double().train()
    rotary = hasattr(model, "roformer")
    if rotary:
        model.roformer.encoder.embed_positions.weight = torch.nn.Parameter(angles(32, 8), requires_grad=False)

    lengths = [13, 7, 10, 2]
    mask = torch.tensor([[int(t < n) for t in range(13)] for n in lengths])
    ids = torch.randint(2, 61, (4, 13)) * mask
    types = (torch.arange(13)[None] >= torch.tensor(lengths)[:, None] // 2).long() * mask
    if name.endswith("mlm"):
        labels = torch.where((torch.rand(4, 13) < 0.4) & (mask == 1), torch.randint(0, 61, (4, 13)), torch.tensor(-100))
    else:
        labels = torch.randint(0, config.num_labels, (4,))
    batch = {"input_ids": ids, "attention_mask": mask, "labels": labels} | ({"token_type_ids": types} if rotary else {})

    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    spared = [n for n in trained if n.endswith("bias") or "norm" in n.lower()]
    optimizer = torch.optim.AdamW([{"params": [p for n, p in trained.items() if (n in spared) == s], "weight_decay": 0 if s else DECAY} for s in (False, True)],
                                  lr=LR, betas=BETAS, eps=EPS)
    golden, losses = dict(batch), []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        result = model(**batch)
        result.loss.backward()
        losses.append(result.loss.item())
        if step == 0:
            golden["logits"] = result.logits.detach().clone()
            golden["loss"] = result.loss.detach().reshape(1).clone()
            golden |= {"grad/" + n: p.grad.clone() for n, p in trained.items()}
        if step < STEPS:
            optimizer.step()
    golden |= {"after/" + n: p.detach().clone() for n, p in trained.items()} | {"losses": torch.tensor(losses, dtype=torch.float64)}
    rule = {"lr": LR, "betas": BETAS, "eps": EPS, "weight_decay": DECAY, "no_decay": spared, "steps": STEPS}
    save_file({n: t.contiguous() for n, t in golden.items()}, folder / "golden.safetensors",
              {"optimizer": json.dumps(rule), "architecture": json.dumps(kind.__name__), "transformers": json.dumps(transformers.__version__)})


out = Path(sys.argv[1])
sizes = {"vocab_size": 61, "hidden_size": 24, "embedding_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 40, "max_position_embeddings": 32,
         "type_vocab_size": 2, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "layer_norm_eps": 1e-7}
make(out, "roformer_mlm", transformers.RoFormerForMaskedLM, 1, transformers.RoFormerConfig(hidden_act="gelu", **sizes))
make(out, "roformer_classifier", transformers.RoFormerForSequenceClassification, 2, transformers.RoFormerConfig(hidden_act="relu", num_labels=3, **sizes))
sizes = {"vocab_size": 61, "dim": 24, "n_heads": 3, "n_layers": 2, "hidden_dim": 40, "max_position_embeddings": 32, "dropout": 0, "attention_dropout": 0}
make(out, "distilbert_mlm", transformers.DistilBertForMaskedLM, 3, transformers.DistilBertConfig(activation="gelu", **sizes))
