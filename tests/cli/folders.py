"""Folders of the transformers library: trained from in one command, exported as adapters of PEFT and as GGUF, and folders that are wrong."""
import json
import shutil
import struct
import unittest

from interchange import llama_folder
from support import SOURCE, CliTest, Safetensors

GOLDEN = SOURCE / "tests" / "golden_models"
TEXT = "the quick brown fox jumps over the lazy dog. "


class Gguf:
    """A whole file: metadata, and name -> (type, sizes with the fastest first, values)."""

    def __init__(self, path):
        self.data, self.at = path.read_bytes(), 0
        assert self.take("<4sI") == (b"GGUF", 3)
        tensors, keys = self.take("<QQ")
        self.metadata = {}
        for _ in range(keys):
            key = self.text()
            self.metadata[key] = self.value(self.take("<I")[0])
        infos = []
        for _ in range(tensors):
            name = self.text()
            rank, = self.take("<I")
            infos.append((name, self.take(f"<{rank}Q"), *self.take("<IQ")))
        body = (self.at + 31) // 32 * 32
        self.tensors = {name: (kind, sizes, self.numbers(body + offset, kind, sizes)) for name, sizes, kind, offset in infos}

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def text(self):
        size, = self.take("<Q")
        return self.take(f"<{size}s")[0].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, count = self.take("<IQ")
            return [self.value(of) for _ in range(count)]
        return self.take({4: "<I", 5: "<i", 6: "<f", 7: "<?"}[kind])[0]

    def numbers(self, at, kind, sizes):
        count = 1
        for size in sizes:
            count *= size
        assert at % 32 == 0
        if kind < 2:
            return list(struct.unpack_from(f"<{count}{'fe'[kind]}", self.data, at))
        values = []
        for block in range(count // 32):
            step, *codes = struct.unpack_from("<e32b", self.data, at + 34 * block)
            values += [step * code for code in codes]
        return values


def floats(tensor):
    dtype, shape, data = tensor
    if dtype == "BF16":
        return list(struct.unpack(f"<{len(data) // 2}f", b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))))
    return list(struct.unpack(f"<{len(data) // 4}f", data))


class Folders(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "text").mkdir()
        for split, times in (("train", 40), ("dev", 4)):
            (cls.folder / "text" / f"{split}.txt").write_text(TEXT * times)
        rows = "".join(f"{label}\tthe {word} is {label}\n" for i in range(20) for label, word in (("good", "dog"), ("bad", "fox"), ("so", "sky")))
        (cls.folder / "moods.tsv").write_text("mood\treview\n" + rows)
        vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "is", "good", "bad", "so", "dog", "fox", "sky"]
        cls.sizes = {}
        for name in ("bert_mlm", "gpt2", "llama_gqa_tied", "bert_classifier", "llama_bf16", "roformer_mlm", "distilbert_mlm"):
            shutil.copytree(GOLDEN / name, cls.folder / name)
            for path in (cls.folder / name).iterdir():
                path.chmod(0o644)
            cls.sizes[name] = json.loads((cls.folder / name / "config.json").read_text()).get("vocab_size")
            (cls.folder / name / "vocab.txt").write_text("\n".join(vocab + [f"[unused{i}]" for i in range(cls.sizes[name] - len(vocab))]) + "\n")

    def train(self, model, *args, data=None, steps=6):
        quick = ["--set", "train.batch=4", "--set", "model.length=8", "--set", "train.eval_every=0", "--set", "train.warmup=0", "--set", "train.lr=0.01"]
        return self.ok_json("train", f"hf:{self.folder / model}", "--data", data or self.bytes_of(model), "--steps", steps, "--quiet", *quick, *args)

    def bytes_of(self, model):
        """Running text in the bytes that the model has tokens for."""
        return self.folder / "text"

    def test_a_masked_model_becomes_a_classifier(self):
        args = ["--task", "classify", "--set", "data.text_column=review", "--set", "data.label_column=mood"]
        done = self.train("bert_mlm", *args, data=self.folder / "moods.tsv")
        self.assertEqual((done["status"], done["step"]), ("finished", 6))
        self.assertEqual(done["weights"]["tensor_trains"], [])
        self.assertIn("head.weight", done["weights"]["new_parameters"])
        row = self.run_row(done["run"])
        self.assertEqual((row["config"]["model"]["task"], row["config"]["model"]["classes"]), ("classification", 3))
        self.assertEqual([c["step"] for c in row["checkpoints"]], [0, 6])
        # What is not the head is the folder's.
        first, given = Safetensors(row["checkpoints"][0]["path"]), Safetensors(self.folder / "bert_mlm" / "model.safetensors")
        self.assertEqual(first.tensors["enc0.attn.q.weight"], given.tensors["bert.encoder.layer.0.attention.self.query.weight"])
        notes = self.comera("plan", f"hf:{self.folder / 'bert_mlm'}", "--data", self.folder / "moods.tsv", *args, "--set", "model.length=8").err
        self.assertRegex(notes, "new head, drawn as for a fresh run: .*head.weight, head.bias")
        # A classifier with other classes than the data gets a new head where that is asked for; its own head it keeps.
        self.fails(3, "train", f"hf:{self.folder / 'bert_classifier'}", "--data", self.folder / "text", "--task", "lm", match="cannot be trained with model.task language")
        self.fails(3, "train", f"hf:{self.folder / 'gpt2'}", "--data", self.folder / "moods.tsv", "--task", "classify", match="cannot be trained with model.task classification")
        self.fails(2, "plan", "demo", "--tt-error", "0.1", match="--tt-error needs a model folder")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--tt-error", "0.1", match="--tt-error needs tensor trains")
        self.fails(2, "plan", "demo", "--tt-gradients", "2", match="--tt-gradients needs a model folder")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--tt-gradients", "2", match="--tt-gradients needs tensor trains")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--method", "comera", "--tt-gradients", "2", match="--tt-gradients needs data")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--method", "comera", "--tt-gradients", "2", "--tt-error", "0.1", match="do not go together")
        self.fails(2, "plan", "demo", "--tt-compression", "4", match="--tt-compression needs a model folder")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--tt-compression", "4", match="--tt-compression needs tensor trains")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--method", "comera", "--tt-compression", "0.5", match="--tt-compression is 0.5")
        self.fails(2, "plan", f"hf:{self.folder / 'gpt2'}", "--method", "comera", "--tt-compression", "4", "--tt-error", "0.1", match="do not go together")
        self.fails(3, "plan", f"hf:{self.folder / 'gpt2'}", "--method", "comera", "--tt-compression", "100", match="cannot have 138 values")

    def test_a_rotary_encoder_is_trained_and_then_classifies(self):
        """Tensor trains of masked tokens go into the library's folder as dense matrices, and come back at their ranks for another task."""
        tokens = self.tokenizer(64)
        sizes = ["encoder.layers=1", "encoder.d_model=16", "encoder.heads=2", "encoder.d_ff=24", "encoder.vocab=64", "length=8", "tt.head.rank=8"]
        ranks = [f"tt.{kind}.{each}" for kind in ("attention", "ffn_in", "ffn_out", "classifier") for each in ("rank=3", "cores=1")]
        sets = [f"model.{each}" for each in sizes + ranks] + [f"data.vocab={tokens}", "data.text_column=", "train.batch=4", "train.eval_every=0"]
        run = self.ok_json("train", "codebert-python", "--data", self.folder / "text", "--steps", 6, "--quiet", *(x for each in sets for x in ("--set", each)))["run"]
        self.assertLess(self.ok_json("export", run, "--to", "huggingface", "-o", self.folder / "rotary")["largest_logit_difference"], 1e-5)
        done = self.train("rotary", "--task", "classify", "--set", "data.text_column=review", "--set", "data.label_column=mood", "--set", f"data.vocab={tokens}",
                          "--method", "comera", *(x for each in ranks for x in ("--set", f"model.{each}")), data=self.folder / "moods.tsv")
        trains = {train["layer"]: train["relative_error"] for train in done["weights"]["tensor_trains"]}
        for layer in ("enc0.attn.q", "enc0.attn.k", "enc0.ffn.in", "enc0.ffn.out"):
            self.assertLess(trains[layer], 1e-6, layer)

    def test_masked_models_train_on_running_text(self):
        for model in ("bert_mlm", "bert_classifier", "distilbert_mlm"):
            tokens = self.tokenizer(self.sizes[model])
            done = self.train(model, "--task", "mlm", "--set", f"data.vocab={tokens}", "--set", "data.mask_share=0.3", "--method", "lora")
            self.assertEqual(done["status"], "finished")
            self.assertEqual("masked.fc.weight" in done["weights"]["new_parameters"], model == "bert_classifier")
            self.assertGreater(self.ok_json("eval", done["run"])["examples"], 0)
            adapter = self.ok_json("export", done["run"], "--to", "peft", "-o", self.folder / "masks")
            self.assertLess(adapter["largest_logit_difference"], 1e-5)

    def test_a_run_from_a_folder_is_computed_again_without_it(self):
        shutil.copytree(self.folder / "llama_bf16", self.folder / "goes")
        (self.folder / "goes" / "vocab.txt").unlink()
        for method in (["--method", "lora"], ["--method", "galore", "--set", "method.galore.rank=2"], ["--method", "comera", "--tt-error", "0.4", "--set", "model.tt.embedding.tensorise=false"]):
            run = self.train_bytes("goes", *method)["run"]
            whole = self.train_bytes("goes", *method, "--set", "train.keep_checkpoints=1")["run"]
            shutil.move(self.folder / "goes", self.folder / "gone")
            try:
                for each in (run, whole):
                    result = self.ok_json("reproduce", each)
                    self.assertTrue(result["identical"], result)
                    self.assertGreater(result["steps"], 0)
                longer = self.ok_json("resume", run, "--extend", 4, "--quiet")
                self.assertEqual(longer["step"], 10)
                self.assertTrue(self.ok_json("reproduce", run)["identical"])
                forked = self.ok_json("fork", run, "--at-step", 3, "--steps", 10, "--quiet")["run"]
                ends = [Safetensors(self.run_row(each)["checkpoints"][-1]["path"]).tensors for each in (run, forked)]
                self.assertEqual(ends[0], ends[1], "the same steps again")
                back = self.ok_json("resume", run, "--from-step", 0, "--quiet")
                self.assertEqual(Safetensors(self.run_row(back["run"])["checkpoints"][-1]["path"]).tensors, ends[0])
                self.assertEqual(self.run_row(run)["checkpoints"][0]["step"], 0, "the first weights stay")
            finally:
                shutil.move(self.folder / "gone", self.folder / "goes")
        # Without its first checkpoint there is nothing to begin with.
        row = self.run_row(run)
        for checkpoint in row["checkpoints"]:
            (self.folder / checkpoint["path"]).unlink()
        self.fails(8, "reproduce", run, match="the checkpoint of its first weights is gone")
        self.fails(8, "resume", run, "--extend", 1, match="the checkpoint of its first weights is gone")

    def train_bytes(self, model, *args):
        if not hasattr(type(self), "tokens"):
            type(self).tokens = self.tokenizer(self.sizes["llama_bf16"])
        return self.train(model, "--task", "lm", "--set", f"data.vocab={self.tokens}", *args)

    def tokenizer(self, size):
        """A tokenizer.json of few tokens: characters, with one of them for what is unknown."""
        letters = sorted(set(TEXT.replace(" ", "\u2581")))
        tokens = ["<unk>", "<s>", "</s>", "<mask>"] + letters
        merges = [["t", "h"], ["th", "e"], ["\u2581", "the"]]
        tokens += ["".join(pair) for pair in merges]
        self.assertLessEqual(len(tokens), size)
        file = {"version": "1.0", "added_tokens": [{"id": i, "content": tokens[i], "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i in range(4)],
                "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                "pre_tokenizer": None, "post_processor": None, "decoder": None,
                "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [" ".join(pair) for pair in merges]}}
        path = self.folder / "tokenizer.json"
        path.write_text(json.dumps(file))
        return path

    def test_ranks_follow_from_an_error(self):
        args = ["plan", f"hf:{self.folder / 'llama_bf16'}", "--method", "comera", "--set", "model.length=8", "--set", "model.tt.embedding.tensorise=false"]
        before = None
        for error in (0, 0.1, 0.3, 0.6):
            document = self.ok_json(*args, "--tt-error", error)
            layers = document["weights"]["tensor_trains"]
            self.assertEqual({layer["layer"] for layer in layers}, {layer["name"] for layer in document["layers"]})
            for layer, planned in zip(layers, document["layers"]):
                self.assertLessEqual(layer["relative_error"], error + 1e-6)
                self.assertEqual(planned["entries"], layer["entries"])
                self.assertEqual(planned["ranks"][1:-1], layer["ranks"])
            entries = sum(layer["entries"] for layer in layers)
            self.assertTrue(before is None or entries < before)
            before = entries
        self.assertEqual(document["parameters"]["tensorised"], entries)

    def test_ranks_follow_from_a_size(self):
        args = ["plan", f"hf:{self.folder / 'llama_bf16'}", "--method", "comera", "--set", "model.length=8"]
        tables = ["--set", "model.tt.embedding.tensorise=true", "--set", "model.tt.embedding.rank=3"]
        for compression, more in ((1, []), (1.5, []), (3, []), (3, tables)):
            document = self.ok_json(*args, *more, "--tt-compression", compression)
            layers = document["weights"]["tensor_trains"]
            self.assertEqual(any(layer["layer"] == "emb.token" for layer in layers), bool(more))
            most, entries = sum(layer["dense_entries"] for layer in layers) / compression, sum(layer["entries"] for layer in layers)
            self.assertLessEqual(entries, most)
            self.assertTrue(all(layer["entries"] <= layer["dense_entries"] for layer in layers))
            if compression > 1:
                self.assertGreater(entries, most - 200, "less than a rank of the largest matrix remains")
            self.assertEqual(document["parameters"]["tensorised"], entries)

        self.fails(3, *args, "--tt-compression", 2, "--set", "model.tt.ffn_in.cores=2", match="ranks for a size need one core a side")
        self.fails(2, *args, "--tt-compression", 0, match="--tt-compression")
        head = ["--set", "model.tt.head.tensorise=true", "--tt-compression", 2]
        planned = self.ok_json(*args, *head)
        self.assertIn("head", [layer["layer"] for layer in planned["weights"]["tensor_trains"]])
        self.train_bytes("llama_bf16", "--method", "comera", *head)

    def test_gradients_choose_the_trains(self):
        """At the same ranks other trains: each counts less by gradients and more by entries than without them. Twice the same."""
        args = [f"hf:{self.folder / 'roformer_mlm'}", "--data", self.folder / "moods.tsv", "--task", "mlm", "--method", "comera",
                *(part for setting in ("data.text_column=review", "train.batch=8", "train.warmup=0", "model.tt.embedding.cores=1", "model.tt.embedding.rank=4",
                                       *(f"model.tt.{kind}.{what}" for kind in ("attention", "ffn_in", "ffn_out") for what in ("cores=1", "rank=4"))) for part in ("--set", setting))]
        plain, chosen, again = (self.ok_json("plan", *args, *more)["weights"]["tensor_trains"] for more in ([], ["--tt-gradients", 4], ["--tt-gradients", 4]))
        self.assertEqual(chosen, again)
        self.assertEqual([layer["layer"] for layer in plain], [layer["layer"] for layer in chosen])
        for one, other in zip(plain, chosen):
            self.assertNotIn("error_by_gradients", one)
            self.assertEqual(one["ranks"], other["ranks"])
            if one["relative_error"] > 1e-3:  # not at full rank
                self.assertGreater(other["relative_error"], one["relative_error"])
                self.assertLess(other["error_by_gradients"], other["relative_error"])
        self.assertGreater(sum(layer["relative_error"] > 1e-3 for layer in plain), 5)
        notes = self.comera("plan", *args, "--tt-gradients", 4).err
        self.assertRegex(notes, r"enc0.attn.q .*relative error [0-9.]+, by gradients [0-9.]+")
        self.assertRegex(notes, rf"total +{sum(one['dense_entries'] for one in chosen)} -> +{sum(one['entries'] for one in chosen)} entries")
        run = self.ok_json("train", *args, "--tt-gradients", 4, "--steps", 2, "--quiet")["run"]
        self.ok("reproduce", run)

    def test_a_run_takes_what_was_planned_for_its_ranks(self):
        args = [f"hf:{self.folder / 'roformer_mlm'}", "--data", self.folder / "moods.tsv", "--task", "mlm", "--method", "comera", "--tt-compression", "3", "--tt-gradients", "4",
                *(part for setting in ("data.text_column=review", "train.batch=8", "train.micro_batches=4", "train.warmup=0") for part in ("--set", setting))]
        planned = self.ok_json("plan", *args)
        trains = planned["weights"]["tensor_trains"]
        self.assertLessEqual(3 * sum(layer["entries"] for layer in trains), sum(layer["dense_entries"] for layer in trains))
        self.assertGreater(len({tuple(layer["ranks"]) for layer in planned["layers"]}), 2, "layers of one kind with different ranks")
        taken = self.ok_json("train", *args, "--steps", 2, "--quiet")["memory"]
        peak = planned["memory"]["peak_bytes"]
        self.assertEqual((taken["planned_peak_bytes"], taken["measured_peak_bytes"]), (peak, peak))

    def test_adapters(self):
        moods = ["--task", "classify", "--set", "data.text_column=review", "--set", "data.label_column=mood"]
        for model, more in (("bert_mlm", moods), ("bert_mlm", [*moods, "--set", "method.lora.rest=true"]), ("roformer_mlm", [*moods, "--set", "method.lora.rest=true"]), ("llama_bf16", []), ("llama_bf16", ["--set", "method.lora.tables=true"]),
                            ("llama_gqa_tied", ["--set", "method.lora.tables=true"]), ("llama_gqa_tied", ["--set", "method.lora.rest=true"]), ("gpt2", []), ("gpt2", ["--set", "method.lora.rest=true"])):
            args = ["--method", "lora", "--set", "method.lora.rank=3", "--set", "method.lora.alpha=5", *more]
            run = (self.train(model, *args, data=self.folder / "moods.tsv") if model.endswith("_mlm") else self.train_bytes(model, *args))["run"]
            out = self.folder / "adapter"
            said = self.ok_json("export", run, "--to", "peft", "-o", out)
            self.assertEqual(said["folder"], str(out))
            self.assertLess(said["largest_difference"], 1e-6)
            self.assertLess(said["largest_logit_difference"], 1e-5)
            config, adapter = json.loads((out / "adapter_config.json").read_text()), Safetensors(out / "adapter_model.safetensors")
            self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"], config["fan_in_fan_out"]), ("LORA", 3, 5, model == "gpt2"))
            if model == "gpt2":  # three matrices are one there
                self.assertEqual((config["rank_pattern"], config["alpha_pattern"]), ({"attn.c_attn": 9}, {"attn.c_attn": 15}))
                continue
            # The formula, on the folder that the base model is: W + alpha / r B A.
            base = Safetensors(self.folder / model / "model.safetensors")
            merged = self.folder / "merged"
            self.ok("export", run, "--to", "huggingface", "-o", merged)
            merged = Safetensors(merged / "model.safetensors")
            factors = [name for name in adapter.tensors if name.endswith("lora_A.weight")]
            self.assertTrue(factors)
            for name in factors:
                module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                a, b = adapter.tensors[name], adapter.tensors[name.replace("lora_A", "lora_B")]
                self.assertTrue(any(module.endswith(target) for target in config["target_modules"]), module)
                (rank, inner), x, y = a[1], floats(a), floats(b)
                self.assertTrue(any(y), "B has been trained")
                before, after = floats(base.tensors[module + ".weight"]), floats(merged.tensors[module + ".weight"])
                for i in range(0, len(before), 7):
                    row, column = divmod(i, inner)
                    product = sum(y[row * rank + k] * x[k * inner + column] for k in range(rank))
                    self.assertAlmostEqual(after[i], before[i] + 5 / 3 * product, delta=1e-5)
            saved = {name.removeprefix("base_model.model.") for name in adapter.tensors if "lora" not in name}
            if model == "bert_mlm":
                self.assertLessEqual({"classifier.weight", "classifier.bias", "bert.pooler.dense.weight"}, saved)
                self.assertIn("classifier", config["modules_to_save"])
                self.assertEqual("bert.embeddings.LayerNorm.weight" in saved, len(more) > len(moods))
            self.assertEqual(config["task_type"], "SEQ_CLS" if model.endswith("_mlm") else "CAUSAL_LM")
        other = self.folder / "other"
        shutil.copytree(self.folder / "llama_bf16", other)
        weights = (other / "model.safetensors").read_bytes()
        (other / "model.safetensors").write_bytes(weights[:-20000] + bytes(20000))
        run = self.train_bytes("llama_bf16", "--method", "lora")["run"]
        self.fails(3, "export", run, "--to", "peft", "-o", self.folder / "y", "--base", other, match="is not that of")
        self.ok("export", run, "--to", "peft", "-o", self.folder / "x", "--base", self.folder / "llama_bf16")
        dense = self.train_bytes("llama_bf16")["run"]
        self.fails(3, "export", dense, "--to", "peft", "-o", self.folder / "y", match="no factors of LoRA")
        self.fails(2, "export", run, "--to", "peft", "--dtype", "float16", "-o", self.folder / "y", match="--dtype is not for --to peft")
        shutil.move(self.folder / "llama_bf16", self.folder / "away")
        self.fails(2, "export", run, "--to", "peft", "-o", self.folder / "y", match="add --base FOLDER")
        shutil.move(self.folder / "away", self.folder / "llama_bf16")

    def test_methods_are_compared_from_a_folder(self):
        moods = ["--task", "classify", "--data", self.folder / "moods.tsv", "--set", "data.text_column=review", "--set", "data.label_column=mood"]
        args = ["duel", f"hf:{self.folder / 'bert_mlm'}", *moods, "--methods", "adamw,lora,comera,galore", "--steps", 3, "--quiet",
                "--set", "train.batch=4", "--set", "model.length=8", "--set", "train.eval_every=0", "--set", "method.galore.rank=2"]
        done = self.ok_json(*args)
        self.assertEqual([(m["method"], m["status"]) for m in done["methods"]], [(m, "finished") for m in ("adamw", "lora", "comera", "galore")])
        runs = [m["runs"][0]["run"] for m in done["methods"]]
        given = Safetensors(self.folder / "bert_mlm" / "model.safetensors")
        for method, run in zip(done["methods"], runs):
            self.assertEqual(method["memory"]["planned_peak_bytes"], method["memory"]["measured_peak_bytes"])
            first = Safetensors(self.run_row(run)["checkpoints"][0]["path"])
            self.assertEqual(first.tensors["emb.norm.gamma"], given.tensors["bert.embeddings.LayerNorm.weight"], method["method"])
        again = self.ok_json(*args)
        self.assertEqual([m["runs"][0]["run"] for m in again["methods"]], runs, "nothing is trained twice")
        self.assertTrue(self.ok_json("reproduce", runs[1])["identical"])
        shutil.copytree(self.folder / "bert_mlm", self.folder / "bert_copy")
        (self.folder / "bert_copy" / "vocab.txt").unlink()
        other = self.ok_json(*[self.named(a, "bert_mlm", "bert_copy") for a in args], "--set", f"data.vocab={self.folder / 'bert_mlm' / 'vocab.txt'}")
        self.assertFalse(set(runs) & {m["runs"][0]["run"] for m in other["methods"]}, "runs from another folder")
        self.fails(8, "duel", f"hf:{self.folder / 'nowhere'}", *moods, match="nowhere")

    @staticmethod
    def named(argument, old, new):
        return argument.replace(old, new) if isinstance(argument, str) else argument

    def test_exported_folders_have_the_tokenizer(self):
        moods = ["--task", "classify", "--set", "data.text_column=review", "--set", "data.label_column=mood"]
        out = self.folder / "with-words"
        run = self.train("bert_mlm", *moods, data=self.folder / "moods.tsv")["run"]
        said = self.ok_json("export", run, "--to", "huggingface", "-o", out)
        self.assertEqual(said["tokenizer"], str(self.folder / "bert_mlm" / "vocab.txt"))
        self.assertEqual((out / "vocab.txt").read_bytes(), (self.folder / "bert_mlm" / "vocab.txt").read_bytes())
        again = self.train("with-words", "--set", "data.text_column=review", "--set", "data.label_column=mood", data=self.folder / "moods.tsv")["run"]
        self.assertEqual(self.run_row(again)["config"]["data"]["vocab"], str(out / "vocab.txt"))
        self.ok("export", again, "--to", "huggingface", "-o", out)  # onto itself
        before = (out / "model.safetensors").read_bytes()
        (out / "tokenizer.json").write_text("{}")
        self.fails(2, "export", run, "--to", "huggingface", "-o", out, match="tokenizer.json would be read in place of vocab.txt")
        self.assertEqual((out / "model.safetensors").read_bytes(), before)
        (out / "tokenizer.json").unlink()
        self.assertEqual((out / "vocab.txt").read_bytes(), (self.folder / "bert_mlm" / "vocab.txt").read_bytes())
        run, out = self.train_bytes("llama_bf16")["run"], self.folder / "with-bytes"
        self.ok_json("export", run, "--to", "huggingface", "-o", out)
        self.assertEqual((out / "tokenizer.json").read_bytes(), self.tokens.read_bytes())
        moved = self.tokens.rename(self.folder / "moved.json")
        copy = self.folder / "checkpoints" / run / "tokenizer" / "tokenizer.json"
        self.assertEqual(self.ok_json("export", run, "--to", "huggingface", "-o", self.folder / "kept")["tokenizer"], str(copy))
        self.assertEqual((self.folder / "kept" / "tokenizer.json").read_bytes(), moved.read_bytes())
        copy.unlink()
        said = self.ok_json("export", run, "--to", "huggingface", "-o", self.folder / "without")
        self.assertEqual(said["missing_tokenizer"], str(self.tokens))
        self.assertFalse((self.folder / "without" / "tokenizer.json").exists())
        moved.rename(self.tokens)

    # The names of classes are the model's: neither the training data nor labels in the new data are needed.
    def test_predictions_and_exports_name_the_classes(self):
        data, new, out = self.folder / "named.tsv", self.folder / "new.tsv", self.folder / "named"
        data.write_bytes((self.folder / "moods.tsv").read_bytes())
        columns = ["--set", "data.text_column=review", "--set", "data.label_column=mood"]
        run = self.train("bert_mlm", "--task", "classify", *columns, data=data)["run"]
        moods = sorted({line.split("\t")[0] for line in data.read_text().splitlines()[1:]})
        data.unlink()
        new.write_text("review\nthe film is good\n")

        def predicted(model):
            line = json.loads(self.ok("predict", model, "--data", new).out)
            self.assertEqual(line["label"], moods[line["logits"].index(max(line["logits"]))])
            return line

        first = predicted(run)
        self.fails(3, "eval", run, "--data", new, match="no column 'mood'")
        self.ok("export", run, "--to", "huggingface", "-o", out)
        config = json.loads((out / "config.json").read_text())
        self.assertEqual(config["id2label"], {str(i): mood for i, mood in enumerate(moods)})
        self.assertEqual(config["label2id"], {mood: i for i, mood in enumerate(moods)})
        again = self.ok_json("import", out, "--set", f"data.set={new}", *columns, "--name", "named again")["runs"][0]
        for now, before in zip(predicted(again)["logits"], first["logits"]):
            self.assertAlmostEqual(now, before, 5)

        # Output i is class i of the folder. Data that number the same names otherwise need a labels.txt.
        config["id2label"] = {str(i): mood for i, mood in enumerate(reversed(moods))}
        (out / "config.json").write_text(json.dumps(config))
        data = self.folder / "elsewhere" / "moods.tsv"
        data.parent.mkdir()
        data.write_bytes((self.folder / "moods.tsv").read_bytes())
        args = ["train", f"hf:{out}", "--data", data, "--task", "classify", *columns, "--steps", 1, "--quiet"]
        self.fails(3, *args, match="the classes of the data are in another order than the model's")
        (data.parent / "labels.txt").write_text("\n".join(reversed(moods)) + "\n")
        self.ok(*args)

    # Files with other classes, other kinds of labels, or none of some classes.
    def test_classes_are_numbered_as_the_model_has_them(self):
        rows = [(f"the {word} is {mood}", mood) for _ in range(20) for mood, word in (("so", "sky"), ("good", "dog"), ("bad", "fox"))]

        def csv(name, rows):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
            return path

        def accuracy(model, path, rows):
            lines = [json.loads(line) for line in self.ok("predict", model, "--data", path).out.splitlines()]
            return sum(line["label"] == label for line, (_, label) in zip(lines, rows, strict=True)) / len(rows)

        classify, data = ["--task", "classify"], csv("all.csv", rows)
        run = self.train("bert_mlm", *classify, data=data, steps=40)["run"]
        some = [row for row in rows if row[1] != "bad"]
        part = csv("part.csv", some)
        self.assertAlmostEqual(self.ok_json("eval", run, "--data", part)["accuracy"], accuracy(run, part, some))
        self.assertGreater(accuracy(run, part, some), 0.9)

        # Of a file without splits every tenth row is held out.
        held = self.ok_json("eval", run)
        self.assertEqual(held["examples"], 6)
        self.assertEqual(self.ok_json("eval", run, "--split", "train")["examples"], 54)
        self.fails(2, "eval", run, "--split", "test", match="the data of the run have no split 'test'")

        out = self.folder / "reversed"
        self.ok("export", run, "--to", "huggingface", "-o", out)
        config = json.loads((out / "config.json").read_text())
        config["id2label"] = {"0": "so", "1": "good", "2": "bad"}
        (out / "config.json").write_text(json.dumps(config))
        other = self.ok_json("import", out, "--name", "reversed")["runs"][0]
        self.assertAlmostEqual(self.ok_json("eval", other, "--data", data)["accuracy"], accuracy(other, data, rows))
        self.fails(3, "train", f"hf:{out}", "--data", part, *classify, "--steps", 1, match="'good' is class 1 of the model and class 0 of the data")

        numbers = self.folder / "kinds"
        csv("kinds/train.csv", rows)
        csv("kinds/dev.csv", [(text, "210"[len(label) - 2]) for text, label in rows])
        self.fails(3, "train", f"hf:{self.folder / 'bert_mlm'}", "--data", numbers, *classify, match="train.csv has names, dev.csv has numbers")
        one = csv("one.csv", rows[:1] * 20)
        self.fails(3, "train", f"hf:{self.folder / 'bert_mlm'}", "--data", one, *classify, match="the data have one class")
        self.fails(3, "data", "suggest", one, match="the data have one class")
        for steps in ((), ("--steps", 3), ("--steps", self.ok_json("runs", "show", run)["step"])):
            self.fails(2, "fork", run, *steps, match="would have no steps to train")

    def test_exported_folders_keep_the_special_tokens(self):
        model, out = self.folder / "llama_gqa_tied", self.folder / "again"
        config = json.loads((model / "config.json").read_text())
        ids = {"bos_token_id": 4, "eos_token_id": [6, 3], "pad_token_id": 7}  # others than their names say
        (model / "config.json").write_text(json.dumps(config | ids))
        for name in ("tokenizer_config.json", "generation_config.json"):
            (model / name).write_text(json.dumps({"of": name}))
        shutil.copy(self.tokenizer(config["vocab_size"]), model / "tokenizer.json")
        run = self.ok_json("import", model, "--name", "special")["runs"][0]
        self.ok("export", run, "--to", "huggingface", "-o", out)
        self.ok("export", run, "--to", "gguf", "-o", self.folder / "special.gguf")
        of_gguf = Gguf(self.folder / "special.gguf").metadata
        self.assertEqual([of_gguf[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos", "padding")], [4, 6, 7])
        written = json.loads((out / "config.json").read_text())
        self.assertEqual({name: written[name] for name in ids}, ids)
        for name in ("tokenizer_config.json", "generation_config.json"):
            self.assertEqual(json.loads((out / name).read_text()), {"of": name})
            (model / name).unlink()
        (model / "tokenizer.json").unlink()
        (model / "config.json").write_text(json.dumps(config))

    def test_gguf(self):
        llama_folder(self.folder / "wide", 32, 64)
        run = self.train_bytes("wide")["run"]
        merged = self.folder / "as-folder"
        self.ok("export", run, "--to", "huggingface", "-o", merged)
        config, theirs = json.loads((merged / "config.json").read_text()), Safetensors(merged / "model.safetensors")
        d, heads, keys = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        for dtype, limit, kind in (("float32", 1e-6, 0), ("float16", 2e-2, 1), ("q8_0", 0.3, 8)):
            out = self.folder / f"{dtype}.gguf"
            said = self.ok_json("export", run, "--to", "gguf", "--dtype", dtype, "-o", out)
            self.assertLess(said["largest_logit_difference"], limit)
            file = Gguf(out)
            self.assertEqual((file.metadata["general.architecture"], file.metadata["llama.block_count"], file.metadata["llama.attention.head_count_kv"]), ("llama", config["num_hidden_layers"], keys))
            self.assertEqual(file.metadata["tokenizer.ggml.model"], "llama")
            self.assertEqual(len(file.metadata["tokenizer.ggml.tokens"]), config["vocab_size"])
            self.assertEqual(file.metadata["tokenizer.ggml.bos_token_id"], 1)
            # Rows of a head's queries: those that rotary positions turn together are side by side.
            kind_of, sizes, values = file.tensors["blk.0.attn_q.weight"]
            self.assertEqual((kind_of, sizes[0]), (kind, d))
            before, width = floats(theirs.tensors["model.layers.0.self_attn.q_proj.weight"]), config["head_dim"]
            for row in range(heads * width):
                head, i = divmod(row, width)
                there = head * width + i % (width // 2) * 2 + i // (width // 2)
                for column in range(d):
                    self.assertAlmostEqual(values[there * d + column], before[row * d + column], delta={"float32": 0, "float16": 1e-3, "q8_0": 1e-2}[dtype])
            self.assertEqual(file.tensors["blk.0.attn_norm.weight"][2], floats(theirs.tensors["model.layers.0.input_layernorm.weight"]))
            self.assertEqual("output.weight" in file.tensors, not config["tie_word_embeddings"])
        self.fails(3, "export", self.train("bert_mlm", "--task", "classify", "--set", "data.text_column=review", "--set", "data.label_column=mood", data=self.folder / "moods.tsv")["run"],
                   "--to", "gguf", "-o", self.folder / "no.gguf", match="no form as GGUF")
        self.fails(2, "export", run, "--to", "gguf", "--dtype", "bfloat16", "-o", self.folder / "no.gguf", match="q8_0")
        self.fails(2, "export", run, "--to", "gguf", match="no output file")
        self.assertFalse((self.folder / "no.gguf").exists())


if __name__ == "__main__":
    unittest.main()
