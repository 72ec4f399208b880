"""What a person can get wrong in a command or a config: exit code, the one-line error with a hint, the same as JSON, and
stored runs intact."""
import json
import unittest

from bad_input_support import CONFIG, DEVICE, NOT_FOUND, STORAGE, USAGE, WithStoredRun
from support import safetensors_bytes


class CommandLine(WithStoredRun):
    def test_unknown_verb(self):
        self.fails(USAGE, "trian", "demo", match=["no verb 'trian'", "did you mean 'comera train'"])
        self.fails(USAGE, "xyzzy", match="comera --help")

    def test_unknown_verb_of_a_group(self):
        self.fails(USAGE, "runs", "lsit", match=["no verb 'runs lsit'", "did you mean 'comera runs list'"])
        self.fails(USAGE, "data", "xyzzyxyzzy", match="comera data --help")
        self.fails(USAGE, "runs")

    def test_unknown_option(self):
        self.fails(USAGE, "train", "demo", "--stepz", 3, match=["--stepz", "did you mean --steps"])
        self.fails(USAGE, "runs", "list", "--al", match="did you mean --all")
        self.fails(USAGE, "train", "demo", "--xyzzyxyzzy", match="comera help train")

    def test_missing_and_bad_arguments(self):
        self.fails(USAGE, "train")
        self.fails(USAGE, "train", "demo", "--steps", "-3")
        self.fails(USAGE, "train", "demo", "--steps", "many")
        for time in ("soon", "nan", "inf", "0x10", "-5s", "1d", "1e999", "1e308h"):
            self.fails(USAGE, "train", "demo", f"--max-time={time}", match=[f"'{time}' is not a duration", "why: ", "for example 90s"], both=False)
        for time in ("0", "0s", "0.0h"):
            self.fails(USAGE, "train", "demo", "--max-time", time, match=[f"--max-time {time} leaves no time to train", "leave it out"], both=False)
        for seconds in ("nan", "-1"):
            self.fails(USAGE, "train", "demo", f"--grace={seconds}", both=False)
        self.fails(USAGE, "train", "demo", "--set", "train.batch", match="path=value")
        self.fails(USAGE, "export", "keep", "--to", "pdf")
        self.fails(USAGE, "export", "keep", "--to", "safetensors", match=["stdout", "-o"])
        for to, option, use in (("huggingface", "--dense", "safetensors"), ("gguf", "--names=own", "safetensors"), ("jsonl", "--wide", "csv"), ("svg", "--scale=2", "png"),
                                ("csv", "--step=1", "safetensors, huggingface, peft, gguf, svg, png"), ("safetensors", "--dtype=float16", "huggingface, gguf")):
            self.fails(USAGE, "export", "keep", "--to", to, option, "-o", self.folder / "unused", match=[f"{option.split('=')[0]} is not for --to {to}", f"it is for {use}"])
        self.assertFalse((self.folder / "unused").exists())
        self.fails(USAGE, "completion", "tcsh")
        self.fails(NOT_FOUND, "runs", "tag", "keep", "nope", "--remove", match="has no tag 'nope'")

    def test_products_that_this_machine_lacks(self):
        rounded = ["demo", "--method", "adamw", "--set", "train.matmul=bf16", "--steps", "1"]
        self.fails(4, "train", *rounded, "--store", self.folder / "rounded.db", env={"COMERA_ONEDNN": "off"}, match=["products in bf16 are not available on this CPU", "oneDNN is left out", "try: unset COMERA_ONEDNN"])
        self.assertIn("peak memory", self.ok("plan", *rounded[:-2], env={"COMERA_ONEDNN": "off"}).out)  # for another machine
        self.fails(3, "train", "demo", "--set", "train.matmul=tf32", "--set", "train.device=cpu", match="computes products in fp32 or bf16")

    def test_no_arguments_is_short_help(self):
        result = self.comera()
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("comera train demo", result.err)

    def test_unknown_run(self):
        for verb in (["runs", "show", "kepe"], ["resume", "kepe"], ["eval", "kepe"], ["reproduce", "kepe"], ["ranks", "kepe"], ["export", "kepe", "--to", "csv"]):
            self.fails(NOT_FOUND, *verb, match=["no run 'kepe'", "did you mean .*keep"])

    def test_unknown_metric_step_and_checkpoint(self):
        self.fails(NOT_FOUND, "get", "keep", "--metric", "trian_loss", match="did you mean 'train_loss'")
        self.fails(NOT_FOUND, "eval", "keep", "--step", 7, match="its checkpoints are at steps: 40")
        self.fails(NOT_FOUND, "fork", "keep", "--at-step", 999, match="no step 999")
        self.fails(NOT_FOUND, "eval", self.folder / "nothing.safetensors")
        self.fails(NOT_FOUND, "import", self.folder / "nothing.csv")

    def test_a_query_that_writes(self):
        for sql in ("DELETE FROM runs", "UPDATE runs SET name = 'x'", "PRAGMA user_version = 7", "ATTACH 'x.db' AS x", "DROP TABLE runs",
                    "SELECT 1; DELETE FROM runs", "WITH x AS (SELECT 1) DELETE FROM runs", "SELEKT 1", ""):
            self.fails(USAGE, "query", sql, match="cannot run this query")
        self.assertFalse((self.folder / "x.db").exists())

    def test_purge_wants_the_name(self):
        self.fails(USAGE, "runs", "purge", "keep")
        self.fails(USAGE, "runs", "purge", "keep", "--confirm", "Keep")
        self.fails(USAGE, "runs", "purge", "keep", "--confirm", "", "--yes")

    def test_resume_with_a_bad_setting_leaves_the_run(self):
        self.fails(USAGE, "resume", "keep", "--set", "train.batch=3", match=["it is fixed when a run starts", "fork"])
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_coer=3", match="did you mean 'train.lr_core'")
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_core=-1")
        self.fails(USAGE, "resume", "keep", "--set", "rank.cap.nothing.1=3", match="no such bond")
        self.fails(USAGE, "resume", "keep", "--set", "train.lr_core")

    def test_what_cannot_be_changed_at_a_step(self):
        for verb in (["train", "demo", "--steps", 60], ["resume", "keep", "--extend", 20], ["fork", "keep", "--steps", 60]):
            for how in (["--set", "rank.cap.fc9.1=3"], ["--edit", "50:rank.cap.fc9.1=3"]):
                self.fails(USAGE, *verb, *how, match=["cannot change rank.cap.fc9.1", "no such bond", "did you mean 'rank.cap.fc"])
            self.fails(USAGE, *verb, "--set", "rank.weight.fc7=0", match="no such tensorised layer", both=False)
            self.fails(USAGE, *verb, "--set", "stage=middle", match="stage=late or stage=early", both=False)
            for value in ("many", "1e30", "inf", "nan", "2.5", "-1", "0x10", "1e10", "", " 5"):
                self.fails(USAGE, *verb, "--set", f"rank.cap.fc0.1={value}", match=["cannot change rank.cap.fc0.1", "not a number of ranks", "null for no cap"], both=False)
            for value in ("many", "inf", "nan", "-0.5", "0x10", "1e999"):
                self.fails(USAGE, *verb, "--edit", f"50:rank.weight.fc0={value}", match=["cannot change rank.weight.fc0", "not a number of 0 or more"], both=False)
            self.fails(USAGE, *verb, "--edit", "50:train.batch=3", match="fixed when a run starts", both=False)
            for text in ("train.lr_core=1", "0:train.lr_core=1", "-5:train.lr_core=1", "5", "5:", "5:train.lr_core"):
                self.fails(USAGE, *verb, f"--edit={text}", match=["path=value", "for example"], both=False)
        self.fails(USAGE, "resume", "keep", "--extend", 20, "--edit", "40:train.lr_core=1", match="the next step is 41")
        self.fails(USAGE, "train", "demo", "--steps", 3, "--set", "method.weights=dense", "--set", "stage=late", match="no tensor trains")
        self.fails(CONFIG, "plan", "demo", "--set", "rank.cap.fc0.1=3", match="rank")  # a config has no bonds

    def test_two_things_on_stdout(self):
        for verb in (["train", "demo", "--steps", 3], ["resume", "keep", "--extend", 3], ["fork", "keep"]):
            result = self.comera(*verb, "--events", "-", "--json", "--quiet")
            self.assertEqual((result.code, result.json()["error"]["code"]), (USAGE, USAGE), result)
            self.assertIn("--events FILE", result.json()["error"]["hint"])
        for args in (["predict", "keep"], ["export", "keep", "--to", "csv"], ["export", "keep", "--to", "svg"], ["export", "keep", "--to", "safetensors", "-o", "-"]):
            self.assertEqual(self.comera(*args, "--json").json()["error"]["code"], USAGE)

    def test_nothing_on_stdin(self):
        self.fails(CONFIG, "plan", "-", match="stdin")
        self.fails(CONFIG, "eval", "keep", "--data", "-", match="comera-stdin")
        self.fails(CONFIG, "import", "-", match="comera-stdin")

    def test_fork_with_a_bad_setting_makes_no_run(self):
        self.fails(CONFIG, "fork", "keep", "--at-step", 20, "--set", "train.batchh=3", match="did you mean 'train.batch'")
        self.fails(STORAGE, "fork", "keep", "--at-step", 20, "--set", "model.mlp.hidden=[784,784,784,784]", match="has no tensor 'fc3")
        self.assertEqual([p.name for p in self.folder.iterdir() if ".fork-" in p.name], [])

    def test_unknown_device(self):
        self.fails(DEVICE, "train", "demo", "--device", "cuda:99")
        self.fails(DEVICE, "eval", "keep", "--device", "abacus")

    def test_outputs_that_cannot_be_written(self):
        nowhere = self.folder / "no" / "folder"
        self.fails(STORAGE, "train", "demo", "--steps", 5, "--events", nowhere / "e")
        self.fails(STORAGE, "predict", "keep", "-o", nowhere / "p")
        self.fails(STORAGE, "export", "keep", "--to", "csv", "-o", nowhere / "c")
        self.fails(STORAGE, "export", "keep", "--to", "safetensors", "-o", nowhere / "s.safetensors")
        self.fails(STORAGE, "config", "init", "demo", "-o", nowhere / "c.json")

    def test_imports_that_are_none(self):
        self.fails(CONFIG, "import", self.write("garbage.csv", "no,step\n\"open"))
        self.fails(CONFIG, "import", self.write("text.csv", "run,step,metric,value\na,1,loss,high\n"), match="line 2")
        foreign = self.write("foreign.safetensors", safetensors_bytes({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
        self.fails(USAGE, "import", foreign, match="--config")
        self.fails(CONFIG, "import", self.checkpoint(), "--config", "demo", "--set", "model.mlp.hidden=[64,32]",
                   "--set", "model.tt.ffn_in.in_modes=[]", "--set", "model.tt.ffn_in.out_modes=[]")
        left = [p.name for p in self.folder.iterdir() if "import.safetensors" in p.name]
        self.assertEqual(left, [])

    def test_a_line_break_in_a_name_stays_in_the_line(self):
        self.fails(NOT_FOUND, "train", "no\nsuch/file.json")


class Config(WithStoredRun):
    def test_missing(self):
        self.fails(NOT_FOUND, "train", self.folder / "none.json")
        self.fails(NOT_FOUND, "train", "dmeo", match="did you mean 'demo'")
        for verb in ("plan", "train"):
            self.fails(NOT_FOUND, verb, "demp")

    def test_unknown_key(self):
        path = self.write("key.json", '{"train": {"batchh": 3}}')
        for verb in (["train"], ["plan"], ["config", "validate"]):
            self.fails(CONFIG, *verb, path, match=["batchh", "did you mean 'train.batch'"])
        self.fails(CONFIG, "train", "demo", "--set", "train.btach=3", match="did you mean 'train.batch'")

    def test_two_problems_are_both_told_in_one_line(self):
        self.fails(CONFIG, "train", self.write("two.json", '{"train": {"batchh": 3, "seed": -1}}'), match=["batchh", "seed"])

    def test_malformed_json_names_line_and_column(self):
        self.fails(CONFIG, "train", self.write("malformed.json", '{"train": {\n  "batch": 3,,\n}}'), match=r"malformed\.json:2:14: not valid JSON")
        self.fails(CONFIG, "train", self.write("empty.json", ""), match=["empty.json:1:1", "empty"])
        self.fails(CONFIG, "train", self.write("list.json", "[1]"), match="object")
        self.fails(CONFIG, "train", self.write("binary.json", bytes(range(256))))

    def test_missing_values(self):
        self.fails(CONFIG, "train", self.write("bare.json", '{"model": {"kind": "mlp"}}'), match="data.set")

    def test_values_out_of_range_and_of_the_wrong_kind(self):
        for path, value in (("train.batch", 0), ("train.batch", 10**7), ("train.batch", 2.5), ("train.batch", "many"), ("train.lr_core", "1e6"), ("train.lr_core", "nan"),
                            ("train.seed", -1), ("train.threads", -2), ("method.comera.threshold", -1), ("method.weights", "tensor"), ("model.mlp.hidden", "[0]"),
                            ("model.mlp.hidden", '["a"]'), ("model.mlp.hidden", 5), ("method.comera.train_ranks", "maybe"), ("model.mlp.dropout", 1), ("data.train_rows", -1)):
            with self.subTest(f"{path}={value}"):
                self.fails(CONFIG, "train", "demo", "--set", f"{path}={value}", match=path.replace(".", r"\."))

    def test_shapes_that_do_not_fit(self):
        for setting in ("model.tt.attention.in_modes=[8,8,5]", "model.tt.embedding.in_modes=[2,2,2,2]", "model.tt.attention.rank=0", "model.tt.attention.ranks=[1,0,1]",
                        "model.tt.attention.ranks=[2,4,4,4,4,4,2]", "model.tt.attention.cores=6", "model.encoder.heads=7", "model.encoder.heads=0", "model.length=4096"):
            with self.subTest(setting):
                self.fails(CONFIG, "plan", "encoder2-nli", "--set", setting, match=setting.split("=")[0].replace(".", r"\."))

    def test_model_and_data_that_do_not_fit(self):
        self.fails(CONFIG, "train", "demo", "--set", "model.classes=3", match="model.classes=10")
        self.fails(CONFIG, "train", "demo", "--set", "model.mlp.inputs=700", match="784")
        self.fails(CONFIG, "train", "demo", "--set", "model.kind=encoder", "--set", "model.tt.ffn_in.in_modes=[]", "--set", "model.tt.ffn_in.out_modes=[]",
                   match="model.kind")
        self.fails(CONFIG, "train", "demo", "--set", "train.batch=12000", match="10000")


if __name__ == "__main__":
    unittest.main()
