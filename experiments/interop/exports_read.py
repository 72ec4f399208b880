#!/usr/bin/env python3
"""Reads what `comera export` wrote with the packages that it is for.

    exports_read.py gguf FILE.gguf FOLDER       FOLDER: the same run by --to huggingface, float32
    exports_read.py peft BASE ADAPTER FOLDER    BASE: the base model; FOLDER as above

gguf (package gguf): every tensor by its name in llama.cpp's table for "llama", dequantised, against the folder's, whose query and key rows are put
in the order of llama.cpp's converter; Q8_0 also byte for byte against the package's own quantisation.
peft (packages torch, transformers, peft): logits of the base model with the adapter against those of FOLDER, and against the folder that
merge_and_unload() gives. Without them: W + alpha / r B A in numpy against FOLDER.
Prints the largest differences; exit 1 where a name, a shape or a byte differs."""
import json
import struct
import sys
from pathlib import Path

import numpy as np


def tensors_of(file):
    data = Path(file).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        raw = np.frombuffer(data[begin:end], {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        out[name] = raw.reshape(entry["shape"])
    return out


def permuted(weights, heads):  # LlamaModel.permute of convert_hf_to_gguf.py
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def check_gguf(path, folder):
    import gguf
    reader = gguf.GGUFReader(path)
    config = json.loads((Path(folder) / "config.json").read_text())
    theirs = tensors_of(Path(folder) / "model.safetensors")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    keys = config.get("num_key_value_heads", config["num_attention_heads"])
    found = {tensor.name: tensor for tensor in reader.tensors}
    worst, different, kinds = 0.0, 0, {}
    for name, values in theirs.items():
        tensor = found.pop(names.get_name(name, try_suffixes=(".weight", ".bias")))
        if "q_proj" in name or "k_proj" in name:
            values = permuted(values, config["num_attention_heads"] if "q_proj" in name else keys)
        kind = gguf.GGMLQuantizationType(tensor.tensor_type)
        kinds[kind.name] = kinds.get(kind.name, 0) + 1
        values = values.astype(np.float32)
        read = gguf.quants.dequantize(tensor.data, kind).reshape(values.shape)
        assert list(reversed(tensor.shape.tolist())) == list(values.shape), (name, tensor.shape, values.shape)
        worst = max(worst, float(np.abs(read.astype(np.float64) - values).max()))
        own = gguf.quants.quantize(values, kind).tobytes()
        different += own != tensor.data.tobytes()
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith(("GGUF.", "tokenizer."))}
    print(f"gguf: {len(theirs)} tensors ({', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}), largest difference of a weight {worst:.3g}, "
          f"{different} differ in a byte from the package's own quantisation, {len(found)} that the folder has not")
    print("  " + ", ".join(f"{key} {value}" for key, value in fields.items()))
    tokens = reader.fields.get("tokenizer.ggml.tokens")
    if tokens:
        print(f"  tokenizer {reader.fields['tokenizer.ggml.model'].contents()}, {len(tokens.contents())} tokens")
    return not different and not found and check_gguf_logits(path, folder)


def check_gguf_logits(path, folder):
    """The library's own reader of GGUF, which undoes the order of query and key rows, against the folder."""
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"  ({error})")
        return True
    read = transformers.AutoModelForCausalLM.from_pretrained(Path(path).parent, gguf_file=Path(path).name, dtype=torch.float32).eval()
    whole = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(whole.config.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        a, b = read(input_ids=ids).logits, whole(input_ids=ids).logits
    print(f"  transformers {transformers.__version__} reads it: largest difference of a logit {(a - b).abs().max():.3g}, of logits up to {b.abs().max():.3g}")
    return True


def check_by_formula(base, adapter, folder):
    config = json.loads((Path(adapter) / "adapter_config.json").read_text())
    before, after, factors = (tensors_of(Path(p) / f) for p, f in ((base, "model.safetensors"), (folder, "model.safetensors"), (adapter, "adapter_model.safetensors")))
    worst = 0.0
    for name in [n for n in factors if n.endswith(".lora_A.weight")]:
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        of = lambda pattern, usual: next((v for k, v in config[pattern].items() if module.endswith("." + k)), config[usual])
        product = of("alpha_pattern", "lora_alpha") / of("rank_pattern", "r") * factors[name.replace("lora_A", "lora_B")].astype(float) @ factors[name].astype(float)
        product = product.T if config["fan_in_fan_out"] else product
        worst = max(worst, float(np.abs(before[module + ".weight"] + product - after[module + ".weight"]).max()))
    print(f"peft, by the formula in numpy: largest difference of a weight {worst:.3g}")
    return True


def check_peft(base, adapter, folder):
    try:
        import peft
        import torch
        import transformers
    except ImportError as error:
        print(f"({error})")
        return check_by_formula(base, adapter, folder)
    task = json.loads((Path(adapter) / "adapter_config.json").read_text())["task_type"]
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = {"CAUSAL_LM": transformers.AutoModelForCausalLM, "SEQ_CLS": transformers.AutoModelForSequenceClassification}.get(task, transformers.AutoModelForMaskedLM)
    more = {"num_labels": config.num_labels, "ignore_mismatched_sizes": True} if task == "SEQ_CLS" else {}
    torch.manual_seed(1)  # a head that the base model does not have is drawn, and must be the adapter's afterwards
    model = peft.PeftModel.from_pretrained(kind.from_pretrained(base, dtype=torch.float32, **more), adapter).eval()
    whole = kind.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(config.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        a, b = model(input_ids=ids).logits, whole(input_ids=ids).logits
        c = model.merge_and_unload()(input_ids=ids).logits
    print(f"peft {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}: largest difference of a logit "
          f"{(a - b).abs().max():.3g}, merged {(c - b).abs().max():.3g}, of logits up to {b.abs().max():.3g}")
    return bool((a - b).abs().max() < 1e-4)


what, *paths = sys.argv[1:]
sys.exit(0 if (check_gguf if what == "gguf" else check_peft)(*paths) else 1)
