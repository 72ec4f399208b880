"""Files for other programs: CSV, JSON Lines, event files, models; read back by readers of their own."""
import csv
import io
import json
import math
import struct
import unittest
import zlib
import xml.etree.ElementTree as ET
from pathlib import Path

from support import QUICK, SOURCE, CliTest, Safetensors, images, safetensors_bytes, tiny_encoder

CRC = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
    CRC.append(n)


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, wire type, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if wire == 2:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield number, wire, value


def records(data):
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert masked_crc32c(data[at:at + 8]) == check, "checksum of a length"
        body = data[at + 12:at + 12 + length]
        assert masked_crc32c(body) == struct.unpack_from("<I", data, at + 12 + length)[0], "checksum of a record"
        yield body
        at += 16 + length


def llama_folder(folder, d=16, f=24):
    """A random LlamaForCausalLM of one block over bytes; the shapes of its tensors."""
    v = 256
    block = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [v, d], block + "input_layernorm.weight": [d], block + "post_attention_layernorm.weight": [d], "model.norm.weight": [d],
              **{f"{block}self_attn.{p}_proj.weight": [d, d] for p in "qkvo"}, block + "mlp.gate_proj.weight": [f, d], block + "mlp.up_proj.weight": [f, d],
              block + "mlp.down_proj.weight": [d, f], "lm_head.weight": [v, d]}
    header, body, state = {}, b"", 1
    for name, shape in shapes.items():
        values = []
        for _ in range(math.prod(shape)):
            state = state * 48271 % 2147483647
            values.append(1.0 if "norm" in name else 0.2 * (state / 2147483647 - 0.5))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += struct.pack(f"<{len(values)}f", *values)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(safetensors_bytes(header, body))
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": d, "intermediate_size": f, "vocab_size": v,
                                                    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": d // 2, "rms_norm_eps": 1e-5,
                                                    "rope_theta": 10000.0, "tie_word_embeddings": False, "max_position_embeddings": 64, "hidden_act": "silu"}))
    return shapes


def png(height, width, value):
    """A gray picture of rows of `value`, value + 1, ..."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + bytes([(value + y) % 256]) * width for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


class Interchange(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert masked_crc32c(b"123456789") == (((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8) & 0xFFFFFFFF  # the reader itself
        result = cls.comera("train", images(cls.folder), "--steps", 60, "--name", "out, \"1\"", "--quiet", "--set", "train.eval_every=20", "--set", "train.lr_rank=2e-2", "--json")
        assert result.code == 0, result
        cls.trained = result.json()["run"]

    def stored(self, store=None):
        return {(name, step): value for name, step, value in self.query(
            "SELECT n.name, m.step, m.value FROM metrics m JOIN metric_names n USING(metric) JOIN runs r USING(run) "
            f"WHERE r.id = '{self.trained}' OR r.tags LIKE '%imported%'", store)}

    def test_folders_of_pictures_and_of_image_models(self):
        folder = self.folder / "pictures"
        for i in range(60):
            path = folder / ("dark", "light")[i % 2] / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(8 + i % 3, 8, 20 + i if i % 2 == 0 else 180 + i))
        checked = self.ok_json("data", "check", folder)
        self.assertEqual((checked["rows"], checked["kind"], [row["label"] for row in checked["classes"]]), (60, "images", ["dark", "light"]))
        self.assertIn("dark/02.png, 10 x 8 as 8 x 8 gray  ->  dark", self.ok("data", "show", folder, "--rows", 2).out)
        config = self.folder / "pictures.json"
        config.write_text(json.dumps({
            "model": {"kind": "vit", "classes": 2, "vit": {"height": 8, "width": 8, "patch": 4, "layers": 1, "d_model": 8, "heads": 2, "d_ff": 16}},
            "data": {"set": str(folder), "pixel_mean": 0.5, "pixel_std": 0.25}, "method": {"name": "AdamW", "weights": "dense"},
            "train": {"steps": 60, "batch": 8, "lr": 0.01, "eval_every": 30}}))
        self.ok("train", config, "--name", "pictures", "--quiet")
        ((rows,),) = self.query("SELECT COUNT(*) FROM metrics m JOIN metric_names n USING(metric) JOIN runs r USING(run) WHERE r.name = 'pictures' AND n.name = 'val_loss'")
        self.assertEqual(rows, 2, "every tenth row validates")
        scored = self.ok_json("eval", "pictures", "--data", folder)
        self.assertEqual(scored["examples"], 60)
        self.assertGreater(scored["accuracy"], 0.95)
        # A folder with one of the classes: they are those of the training set.
        (self.folder / "some/light").mkdir(parents=True)
        (self.folder / "some/light/a.png").write_bytes(png(8, 8, 200))
        self.assertEqual(self.ok_json("eval", "pictures", "--data", self.folder / "some")["accuracy"], 1)
        model = self.folder / "image model"
        self.ok("export", "pictures", "--to", "huggingface", "-o", model)
        self.assertEqual(json.loads((model / "preprocessor_config.json").read_text())["image_mean"], [0.5])
        again = self.ok_json("import", model, "--set", f"data.set={folder}", "--name", "again")["runs"][0]
        self.assertEqual(self.ok_json("eval", again, "--data", folder)["loss"], scored["loss"])

    def test_csv(self):
        stored = self.stored()
        text = self.ok("export", self.trained, "--to", "csv").out
        rows = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual(rows[0], ["run", "step", "wall_time", "metric", "value"])
        self.assertEqual({(metric, int(step)): float(value) for _, step, _, metric, value in rows[1:]}, stored)
        path = self.folder / "out.csv"
        self.assertEqual(self.ok_json("export", self.trained, "--to", "csv", "-o", path)["file"], str(path))
        self.assertTrue(path.read_bytes().count(b"\r\n") == len(rows))
        wide = list(csv.DictReader(io.StringIO(self.ok("export", self.trained, "--to", "csv", "--wide").out, newline="")))
        self.assertEqual(len(wide), 60)
        for row in wide:
            for metric in ("train_loss", "val_loss"):
                wanted = stored.get((metric, int(row["step"])))
                self.assertEqual(row[metric], "" if wanted is None else row[metric])
                if wanted is not None:
                    self.assertEqual(float(row[metric]), wanted)

    def test_jsonl(self):
        lines = [json.loads(line) for line in self.ok("export", self.trained, "--to", "jsonl").out.splitlines()]
        self.assertEqual(lines[0]["type"], "run")
        self.assertEqual(lines[0]["name"], 'out, "1"')
        kinds = {line["type"] for line in lines}
        self.assertLessEqual({"run", "metrics", "rank", "memory", "event", "checkpoint"}, {k.rstrip("s") if k != "metrics" else k for k in kinds})

    def test_event_files(self):
        path = self.ok_json("export", self.trained, "--to", "tfevents", "-o", self.folder / "tb")["file"]
        found, versions = {}, []
        for body in records(Path(path).read_bytes()):
            step = 0
            for number, wire, value in fields(body):
                if number == 2:
                    step = value
                if number == 3:
                    versions.append(value)
                if number == 5:
                    for _, _, entry in fields(value):
                        parts = {n: v for n, _, v in fields(entry)}
                        if 2 in parts:
                            found[parts[1].decode(), step] = struct.unpack("<f", parts[2])[0]
        self.assertEqual(versions, [b"brain.Event:2"])
        for key, value in self.stored().items():
            self.assertIn(key, found)
            self.assertTrue(math.isclose(found[key], value, rel_tol=1e-6, abs_tol=1e-30), f"{key}: {found[key]} for {value}")

    def test_trace(self):
        document = json.loads(self.ok("export", self.trained, "--to", "trace").out)
        self.assertEqual(document["otherData"]["run"], self.trained)
        steps = [event for event in document["traceEvents"] if event["ph"] == "X" and event["name"] == "step"]
        self.assertEqual({event["args"]["step"]: event["dur"] for event in steps},
                         {step: round(ms * 1000, 3) for (name, step), ms in self.stored().items() if name == "step_ms"})
        self.assertEqual(len(steps), 60)
        for one, other in zip(steps, steps[1:]):
            self.assertGreaterEqual(other["ts"], one["ts"] + one["dur"] - 0.002)  # both are rounded

    def svg(self, *more):
        """The export as (text that is read, points of each line by its colour)."""
        root = ET.fromstring(self.ok("export", self.trained, "--to", "svg", *more).out)
        words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        lines = {}
        for element in root.iter("{http://www.w3.org/2000/svg}polyline"):
            if "clip-path" in element.attrib:
                lines[element.get("stroke")] = [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]
        return words, lines

    def test_pictures(self):
        words, lines = self.svg("--metric", "train_loss")
        self.assertIn("train_loss", words)
        self.assertIn('out, "1", step 60', words)
        (points,) = lines.values()
        stored = [value for _, value in sorted((step, value) for (name, step), value in self.stored().items() if name == "train_loss")]
        self.assertEqual(len(points), len(stored))
        # Highest where the loss is highest, and straight between: y = a - b * loss.
        ends = sorted(range(len(stored)), key=stored.__getitem__)
        low, high = ends[0], ends[-1]
        self.assertLess(points[high][1], points[low][1])
        for (_, y), value in zip(points, stored):
            share = (value - stored[low]) / (stored[high] - stored[low])
            self.assertAlmostEqual(y, points[low][1] + share * (points[high][1] - points[low][1]), delta=0.02)
        self.assertEqual(len(self.svg()[1]), 2)  # both losses
        ranks = {(layer, bond): rank for layer, bond, rank in self.query(
            "SELECT layer, bond, rank FROM ranks JOIN runs USING(run) WHERE id = '%s' AND ranks.step <= 20 ORDER BY ranks.step" % self.trained)}
        shown = [word for word in self.svg("--draw", "ranks", "--step", 20)[0] if " / " in word]
        self.assertEqual(sorted(int(word.split(" / ")[0]) for word in shown), sorted(ranks.values()))
        words, _ = self.svg("--draw", "tensor-trains", "--step", 20)
        self.assertIn("step 20", words[-1])
        self.assertEqual(sorted(int(word.split("/")[0]) for word in words if word.replace("/", "").isdigit() and "/" in word), sorted(ranks.values()))
        dark, light = (self.ok("export", self.trained, "--to", "svg", "--theme", theme).out for theme in ("dark", "light"))
        self.assertNotEqual(dark, light)
        path = self.folder / "loss.svg"
        self.assertEqual(self.ok_json("export", self.trained, "--to", "svg", "-o", path)["file"], str(path))
        self.assertEqual(path.read_text(), light)
        # What cannot be drawn leaves no file.
        none = self.folder / "none.svg"
        for code, args, match in ((8, ["--metric", "trian_loss"], "did you mean 'train_loss'"), (2, ["--draw", "ranks", "--metric", "train_loss"], "--metric selects curves"),
                                  (2, ["--draw", "bars"], "bars"), (2, ["--scale", "9"], "scale")):
            self.fails(code, "export", self.trained, "--to", "svg", "-o", none, *args, match=match)
        self.assertFalse(none.exists())

    def test_pictures_as_pixels(self):
        self.fails(2, "export", self.trained, "--to", "png", match="add -o")
        sizes = {}
        for scale in (1, 3):
            for draw in ("curves", "ranks", "tensor-trains"):
                path = self.folder / f"{draw}-{scale}.png"
                self.ok("export", self.trained, "--to", "png", "--draw", draw, "--scale", scale, "-o", path)
                data = path.read_bytes()
                self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
                sizes[draw, scale] = struct.unpack(">II", data[16:24])
                length = struct.unpack(">I", data[33:37])[0]
                self.assertEqual(data[37:41], b"IDAT")
                rows = zlib.decompress(data[41:41 + length])
                width, height = sizes[draw, scale]
                self.assertEqual(len(rows), height * (3 * width + 1))
                self.assertGreater(len(set(rows)), 20, "a page with nothing on it")
        self.assertEqual(sizes["curves", 1], (900, 440))
        for draw in ("curves", "ranks", "tensor-trains"):
            for one, three in zip(sizes[draw, 1], sizes[draw, 3]):
                self.assertAlmostEqual(three, 3 * one, delta=2)
        self.ok("export", self.trained, "--to", "png", "-o", self.folder / "again.png", "--scale", "1")
        self.assertEqual((self.folder / "again.png").read_bytes(), (self.folder / "curves-1.png").read_bytes())

    def test_imports_give_the_values_back(self):
        exported = self.folder / "round.csv"
        self.ok("export", self.trained, "--to", "csv", "-o", exported)
        events = self.folder / "tb2"
        self.ok("export", self.trained, "--to", "tfevents", "-o", events)
        for path, exact in ((exported, True), (events, False), (self.store, True)):
            store = self.folder / f"into-{path.name}" / "runs.db"
            self.fails(2, "import", path, "--set", "train.batch=8", "--store", store, match="--config and --set are for models")
            imported = self.ok_json("import", path, "--store", store)
            self.assertGreaterEqual(len(imported["runs"]), 1)
            rows = self.stored(store)
            for key, value in self.stored().items():
                if exact:
                    self.assertEqual(rows[key], value)
                else:
                    self.assertTrue(math.isclose(rows[key], value, rel_tol=1e-6, abs_tol=1e-30), key)

    def test_curves_that_are_there_already_are_told(self):
        store, curves = self.folder / "twice" / "runs.db", self.folder / "curves.csv"
        curves.write_text("step,loss\n1,0.5\n2,0.25\n")
        first = self.ok("import", curves, "--store", store)
        self.assertEqual(first.err, "")
        again = self.ok("import", curves, "--store", store)
        self.assertNotEqual(again.out, first.out, "it is imported all the same")
        self.assertEqual(again.err, f"run {again.out.strip()} has the same curves as run {first.out.strip()} (curves), which was already here\n")
        self.assertEqual(len(self.ok_json("import", curves, "--store", store)["notes"]), 1)
        curves.write_text("step,loss\n1,0.5\n2,0.125\n")
        self.assertEqual(self.ok("import", curves, "--store", store).err, "")

    def test_a_model_goes_out_and_comes_back(self):
        scored = self.ok_json("eval", self.trained)
        out = self.folder / "model.safetensors"
        self.ok("export", self.trained, "--to", "safetensors", "-o", out)
        checkpoint = Safetensors(self.run_row(self.trained)["checkpoints"][-1]["path"])
        model = Safetensors(out)
        self.assertEqual(model.tensors, {name: tensor for name, tensor in checkpoint.tensors.items() if not name.startswith(("opt.", "state."))})
        new = self.ok_json("import", out, "--config", images(self.folder), "--name", "back")["runs"][0]
        again = self.ok_json("eval", new)
        for name in ("accuracy", "loss", "examples"):
            self.assertEqual(again[name], scored[name], name)
        # Trained on from there.
        forked = self.ok_json("fork", new, "--steps", 5, "--quiet")
        self.assertEqual((forked["status"], forked["step"]), ("finished", 5))

    def test_files_of_this_program_bring_their_config(self):
        scored, store = self.ok_json("eval", self.trained), self.folder / "elsewhere" / "runs.db"
        checkpoint = self.run_row(self.trained)["checkpoints"][-1]
        exported = self.folder / "brings.safetensors"
        self.ok("export", self.trained, "--to", "safetensors", "-o", exported)
        for file, step in ((checkpoint["path"], checkpoint["step"]), (exported, 0)):
            new = self.ok_json("import", file, "--store", store)["runs"][0]
            row = self.run_row(new, store)
            self.assertEqual((row["name"], row["status"], row["checkpoints"][0]["step"]), (self.run_row(self.trained)["name"], "finished", step))
            self.assertNotEqual(row["checkpoints"][0]["path"], str(file), "a copy of its own")
            self.assertEqual(self.ok_json("eval", new, "--store", store)["loss"], scored["loss"])
            forked = self.ok_json("fork", new, "--steps", step + 5, "--quiet", "--store", store)
            self.assertEqual((forked["status"], forked["step"]), ("finished", step + 5))
        self.fails(2, "import", exported, "--set", "train.batch=8", "--store", store, match="--config")
        plain = self.folder / "plain.safetensors"
        plain.write_bytes(safetensors_bytes({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
        self.fails(2, "import", plain, "--store", store, match="needs the config")
        self.assertEqual(len(self.ok_json("runs", "list", "--store", store)["runs"]), 4)

    def test_dense_and_folded(self):
        for flag in ("--dense", "--folded"):
            self.ok("export", self.trained, "--to", "safetensors", flag, "-o", self.folder / f"model{flag}.safetensors")
        self.assertFalse([name for name in Safetensors(self.folder / "model--dense.safetensors").tensors if ".rank." in name or ".core." in name])
        # Folded: rank vectors are in the cores, what is left of them is 0 and 1; it computes the same.
        folded = Safetensors(self.folder / "model--folded.safetensors")
        ranks = [struct.unpack(f"<{len(data) // 4}f", data) for name, (_, _, data) in folded.tensors.items() if ".rank." in name]
        self.assertTrue(ranks)
        self.assertLessEqual({value for values in ranks for value in values}, {0.0, 1.0})
        new = self.ok_json("import", self.folder / "model--folded.safetensors", "--config", images(self.folder), "--name", "folded")["runs"][0]
        a, b = self.ok_json("eval", self.trained), self.ok_json("eval", new)
        self.assertTrue(math.isclose(a["loss"], b["loss"], rel_tol=1e-5), (a, b))
        plain = self.ok_json("import", self.folder / "model--dense.safetensors", "--name", "multiplied out")["runs"][0]
        self.assertTrue(math.isclose(a["loss"], self.ok_json("eval", plain)["loss"], rel_tol=1e-5))
        shapes = {name: shape for name, (_, shape, _) in Safetensors(self.folder / "model--dense.safetensors").tensors.items()}
        self.assertEqual({name: shape for name, shape in shapes.items() if len(shape) == 2}, {"fc0.weight": [512, 784], "fc1.weight": [256, 512], "head.weight": [10, 256]})

    def test_a_model_folder_is_fine_tuned_and_goes_out(self):
        folder = self.folder / "tiny-llama"
        shapes = llama_folder(folder)
        (self.folder / "text").mkdir()
        for split, times in (("train", 60), ("dev", 4)):
            (self.folder / "text" / f"{split}.txt").write_text("the quick brown fox jumps over the lazy dog. " * times)
        new = self.ok_json("import", folder, "--set", f"data.set={self.folder / 'text'}", "--set", "model.length=16", "--set", "train.batch=4")["runs"][0]
        self.assertEqual(self.run_row(new)["name"], "tiny-llama")
        back = self.folder / "back"
        self.assertEqual(self.ok_json("export", new, "--to", "huggingface", "-o", back)["largest_difference"], 0)
        self.assertEqual(Safetensors(back / "model.safetensors").tensors, Safetensors(folder / "model.safetensors").tensors)
        config = json.loads((back / "config.json").read_text())
        for key, value in json.loads((folder / "config.json").read_text()).items():
            if key != "max_position_embeddings":
                self.assertEqual(config[key], value, key)
        before = self.ok_json("eval", new)
        # As factors on the frozen model: the folder that comes out has them multiplied in.
        lora = self.ok_json("import", folder, "--set", f"data.set={self.folder / 'text'}", "--set", "model.length=16", "--set", "train.batch=4",
                            "--set", "method.weights=lora", "--set", "method.lora.rest=true", "--set", "train.lr=0.01", "--set", "train.eval_every=0")["runs"][0]
        self.assertEqual(self.ok_json("eval", lora)["loss"], before["loss"], "B is 0")
        tuned = self.ok_json("fork", lora, "--steps", 40, "--quiet")
        self.assertEqual(tuned["status"], "finished")
        after = self.ok_json("eval", tuned["run"])
        self.assertLess(after["loss"], before["loss"] - 0.5)
        self.assertTrue(math.isclose(after["perplexity"], math.exp(after["loss"]), rel_tol=1e-9))
        text = self.ok("generate", tuned["run"], "--prompt", "the ", "--tokens", 30, "--temperature", 0).out
        self.assertEqual(len(text.encode()), 31)
        as_json = self.ok_json("generate", tuned["run"], "--prompt", "the ", "--tokens", 30, "--temperature", 0)
        self.assertEqual((as_json["prompt"], as_json["text"] + "\n"), ("the ", text))
        self.fails(3, "predict", tuned["run"], match="comera generate", both=False)
        self.fails(3, "generate", self.trained, match="writes no text")
        self.ok("export", tuned["run"], "--to", "huggingface", "-o", self.folder / "tuned")
        self.assertEqual({name: shape for name, (_, shape, _) in Safetensors(self.folder / "tuned" / "model.safetensors").tensors.items()}, shapes)
        again = self.ok_json("import", self.folder / "tuned", "--set", f"data.set={self.folder / 'text'}", "--set", "model.length=16", "--set", "train.batch=4")["runs"][0]
        self.assertTrue(math.isclose(self.ok_json("eval", again)["loss"], after["loss"], rel_tol=1e-5))
        self.ok("export", new, "--to", "huggingface", "--dtype", "bfloat16", "-o", self.folder / "half")
        self.assertEqual({dtype for dtype, _, _ in Safetensors(self.folder / "half" / "model.safetensors").tensors.values()}, {"BF16"})
        # As tensor trains: at full ranks the same model, at small ones a smaller one that says its error.
        full = self.ok_json("import", folder, "--set", f"data.set={self.folder / 'text'}", "--set", "model.length=16", "--set", "train.batch=4",
                            "--set", "method.weights=tt", *[x for kind in ("attention", "ffn_in", "ffn_out", "embedding") for x in ("--set", f"model.tt.{kind}.rank=1000")])
        self.assertEqual(len(full["tensor_trains"]), 8)
        self.assertLess(max(layer["relative_error"] for layer in full["tensor_trains"]), 1e-6)
        self.assertTrue(math.isclose(self.ok_json("eval", full["runs"][0])["loss"], before["loss"], rel_tol=1e-5))
        small = self.ok_json("import", folder, "--set", "method.weights=tt", "--set", "model.tt.ffn_in.rank=2")["tensor_trains"]
        self.assertGreater(max(layer["relative_error"] for layer in small), 0.1)
        self.assertRegex(self.ok("import", folder, "--set", "method.weights=tt").err, r"dec0\.attn\.q +256 -> +\d+ entries \(\d+\.\dx\), relative error")
        self.fails(3, "export", self.trained, "--to", "huggingface", "-o", self.folder / "none", match="no form of the transformers library")
        self.assertFalse((self.folder / "none").exists())

    def test_official_names(self):
        golden = {name.split("/", 1)[1] for name in Safetensors(SOURCE / "tests" / "golden" / "encoder_2x24.safetensors").tensors if name.startswith("before/")}
        self.assertGreater(len(golden), 100)
        config = tiny_encoder(self.folder)
        run = self.ok_json("train", config, "--quiet")["run"]
        out = self.folder / "official.safetensors"
        self.ok("export", run, "--to", "safetensors", "--names", "official", "-o", out)
        official = Safetensors(out)
        # A state_dict also holds a buffer of positions, which is no parameter.
        self.assertEqual(set(official.tensors) - {"encoder.embedding.position_ids"}, golden)  # the same layers, three modes a side and four cores a table
        # ... and in their shape conventions: a core is (r, mode, r'), one of the table (r, rows, columns, r').
        shapes = {name: shape for name, (_, shape, _) in official.tensors.items()}
        self.assertEqual(shapes["encoder.encoder_blocks.0.slf_attn.w_qs.layer.tensor.factors.0"], [1, 4, 4])
        self.assertEqual(len(shapes["encoder.embedding.word_emb.tensor.factors.1"]), 4)
        self.assertEqual(shapes["encoder.embedding.position_emb.weight"], [16, 24])
        self.assertEqual(shapes["classifier.fc2.layer.weight"], [3, 24])
        self.assertEqual({official.tensors[name][0] for name in golden}, {"F32"})
        new = self.ok_json("import", out, "--config", config, "--name", "official")["runs"][0]
        a, b = self.ok_json("eval", run), self.ok_json("eval", new)
        self.assertEqual((a["accuracy"], a["loss"]), (b["accuracy"], b["loss"]))
        own = [Safetensors(self.run_row(r)["checkpoints"][-1]["path"]).tensors for r in (run, new)]
        a, b = ({n: t for n, t in tensors.items() if not n.startswith("opt.")} for tensors in own)
        self.assertEqual(a, b)
        # Ranks that were cut come back as zeros: the published program makes its model with the config's ranks.
        cut = self.ok_json("train", config, "--quiet", "--steps", 40, "--set", "train.lr_rank=0.2", "--set", "method.comera.rank_weight=10", "--set", "method.comera.prune_every=1",
                           "--set", "method.comera.prune_dead_share=0.01", "--set", "method.comera.floor_rank=true")["run"]
        held = Safetensors(self.run_row(cut)["checkpoints"][-1]["path"]).tensors
        self.assertTrue(any(held[name][1] != tensor[1] for name, tensor in own[0].items() if ".core." in name and name in held), "nothing was cut")
        self.ok("export", cut, "--to", "safetensors", "--names", "official", "-o", self.folder / "cut.safetensors")
        self.assertEqual({name: shape for name, (_, shape, _) in Safetensors(self.folder / "cut.safetensors").tensors.items()}, shapes)
        back = self.ok_json("import", self.folder / "cut.safetensors", "--config", config, "--name", "cut-back")["runs"][0]
        a, b = self.ok_json("eval", cut), self.ok_json("eval", back)
        self.assertEqual(a["accuracy"], b["accuracy"])
        self.assertTrue(math.isclose(a["loss"], b["loss"], rel_tol=1e-5), (a, b))
        # Another size is refused.
        self.fails(3, "import", out, "--config", config, "--set", "model.encoder.layers=1", "--set", "model.encoder.d_ff=96", "--set", "model.tt.ffn_in.out_modes=[4,4,6]",
                   "--set", "model.tt.ffn_out.in_modes=[6,4,4]")

    def test_an_image_model_has_no_official_names(self):
        self.fails(3, "export", self.trained, "--to", "safetensors", "--names", "official", "-o", self.folder / "no.safetensors")


if __name__ == "__main__":
    unittest.main()
