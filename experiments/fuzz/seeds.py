"""Files of every format as first inputs of the fuzz targets: seeds.py FOLDER writes FOLDER/TARGET/NAME. Needs Pillow."""
import gzip
import io
import json
import pathlib
import struct
import sys

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
TO = pathlib.Path(sys.argv[1])


def seed(target, name, content):
    path = TO / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


rows = [("1", "Good, and\ncheap", "glad"), ("2", 'She said "no"', "angry"), ("3", "a plain one", "glad")]
seed("csv", "quoted", "id,review,mood\n" + "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows))
seed("csv", "pair", "a,b,label\none,good,0\ngood,one,1\n")
seed("tsv", "sst", "sentence\tlabel\none good\t1\na ones\t0\n")
seed("tsv", "mnli", "index\tsentence1\tsentence2\tgold_label\n0\tone\tgood\tneutral\n1\tgood\tone\tentailment\n")
seed("jsonl", "texts", "".join(json.dumps({"id": i, "review": text, "mood": mood}) + "\n" for i, text, mood in rows))
seed("jsonl", "code", json.dumps({"code": "def f(x):\n    return x\n", "docstring": "one \u00e9 \ud83d\ude00"}) + "\n")
for parquet in sorted((ROOT / "tests/data/parquet").rglob("*.parquet")):
    seed("parquet", parquet.stem, parquet.read_bytes())
seed("text", "book", "One good day.\n\nA second one \u2026 and so on.\n" * 4)
clicks = "".join("\t".join([str(i % 2), *(str(i * c - 7) if c % 5 else "" for c in range(13)), *(f"{i * c % 3:08x}" for c in range(26))]) + "\n" for i in range(5))
seed("clicks", "plain", clicks)
seed("clicks", "packed", gzip.compress(clicks.encode()))
seed("idx", "images", struct.pack(">BBBBIII", 0, 0, 8, 3, 4, 3, 2) + bytes(range(24)))
for mode in ("L", "RGB", "P", "RGBA", "1"):
    picture = Image.linear_gradient("L").resize((9, 7)).convert("RGB").convert(mode)
    for form in ("PNG", "JPEG") if mode in ("L", "RGB") else ("PNG",):
        out = io.BytesIO()
        picture.save(out, form)
        seed("picture", f"{mode}.{form.lower()}", out.getvalue())
for tokenizer in sorted((ROOT / "tests/golden_models/tokenizers").glob("*/tokenizer.json")):
    seed("tokenizer", tokenizer.parent.name, tokenizer.read_bytes())
seed("vocabulary", "bert", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhel\n##lo\n")
for preset in sorted((ROOT / "assets/presets").glob("*.json")):
    seed("config", preset.stem, preset.read_bytes())
for target, model, file in (("folder_config", "gpt2", "config.json"), ("folder_bert", "bert_mlm", "config.json"), ("folder_weights", "llama_bf16", "model.safetensors")):
    seed(target, model, (ROOT / "tests/golden_models" / model / file).read_bytes())
weights = (ROOT / "tests/golden_models/gpt2/model.safetensors").read_bytes()
header = json.loads(weights[8:8 + struct.unpack("<Q", weights[:8])[0]])
names = {name: "model-00001-of-00001.safetensors" for name in header if name != "__metadata__"}
seed("folder_index", "gpt2", json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
metadata = {"comera": json.dumps({"config": json.loads((ROOT / "assets/presets/demo.json").read_text()), "state": {"step": 3}}), "step": "3"}
header = json.dumps({"__metadata__": metadata, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
seed("checkpoint", "small", struct.pack("<Q", len(header)) + header + bytes(8))
