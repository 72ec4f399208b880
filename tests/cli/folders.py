"""Folders of the transformers library: trained from in one command."""
import json
import shutil
import unittest

from support import SOURCE, CliTest, Safetensors

GOLDEN = SOURCE / "tests" / "golden_models"
TEXT = "the quick brown fox jumps over the lazy dog. "


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
        for name in ("bert_mlm", "gpt2", "llama_gqa_tied", "bert_classifier", "llama_bf16"):
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
        tokens = ["<unk>", "<s>", "</s>"] + letters
        merges = [["t", "h"], ["th", "e"], ["\u2581", "the"]]
        tokens += ["".join(pair) for pair in merges]
        self.assertLessEqual(len(tokens), size)
        file = {"version": "1.0", "added_tokens": [{"id": i, "content": tokens[i], "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i in range(3)],
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


if __name__ == "__main__":
    unittest.main()
