"""A set in Parquet files, as Hugging Face stores one: shown, checked, trained on and evaluated. Skipped where this build has no Arrow, but for
what it says then."""
import json
import shutil
import subprocess
import unittest

from support import BIN, SOURCE, TINY_ENCODER, CliTest, environment

FILES = SOURCE / "tests/data/parquet"


class Parquet(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.set = cls.folder / "pairs"
        (cls.set / "data").mkdir(parents=True)
        for name in ("train-00000-of-00001", "validation-00000-of-00001"):
            shutil.copy(FILES / "pairs.parquet", cls.set / f"data/{name}.parquet")

    def needs_arrow(self):
        parquet = self.ok_json("doctor")["parquet"]
        if not parquet["here"]:
            self.skipTest(f"Arrow is {parquet['reason']}")

    def test_without_arrow_the_error_says_what_to_do(self):
        self.fails(3, "data", "show", self.set, env={"COMERA_ARROW": "off", "XDG_CACHE_HOME": self.folder / "other"}, match=["cannot read .*train-00000-of-00001.parquet", "why: Arrow", "try: unset COMERA_ARROW"])
        doctor = self.ok("doctor", env={"COMERA_ARROW": "off"}).out
        self.assertRegex(doctor, r"(?m)^Parquet +Arrow is left out: COMERA_ARROW=off")
        # The program without the library.
        (self.folder / "alone").mkdir()
        alone = shutil.copy(BIN, self.folder / "alone/comera")
        result = subprocess.run([alone, "data", "show", self.set], env=environment(self.folder, XDG_CACHE_HOME=self.folder / "other"), cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 3, result)
        self.check_error_text(result.stderr, result)
        self.assertRegex(result.stderr, r"(?s)cannot read .*why: .*there is no libcomera_parquet.so next to the program.*try: run COMERA_ARROW=on cmake/setup.sh")

    def test_a_set_is_trained_on_and_the_run_goes_on(self):
        self.needs_arrow()
        config = {**json.loads(json.dumps(TINY_ENCODER)), "data": {"set": str(self.set)}}
        path = self.folder / "tiny.json"
        path.write_text(json.dumps(config))
        self.ok("train", path, "--name", "parquet", "--quiet")
        row = self.run_row("parquet")
        self.assertEqual((row["status"], row["step"]), ("finished", 20), row)
        self.ok("reproduce", "parquet")
        found = self.ok_json("eval", "parquet", "--data", self.set / "data/validation-00000-of-00001.parquet")
        self.assertEqual(found["examples"], 2500, found)
        # The same rows as JSONL make the same losses.
        for name in ("train", "dev"):
            (self.folder / "jsonl").mkdir(exist_ok=True)
            (self.folder / f"jsonl/{name}.jsonl").write_text("".join(json.dumps({"sentence1": f"row {i % 7}", "sentence2": "x", "label": i % 3}) + "\n" for i in range(2500)))
        self.ok("train", path, "--name", "jsonl", "--set", f"data.set={self.folder / 'jsonl'}", "--quiet")
        losses = [self.query(f"SELECT m.step, m.value FROM metrics m JOIN metric_names n USING (metric) JOIN runs r USING (run) WHERE r.name = '{name}' AND n.name = 'train_loss' ORDER BY 1")
                  for name in ("parquet", "jsonl")]
        self.assertEqual(len(losses[0]), 20)
        self.assertEqual(losses[0], losses[1])

    def test_rows_are_shown_checked_and_described(self):
        self.needs_arrow()
        columns = ["--text", "review", "--label", "mood"]
        self.assertEqual(self.ok("data", "show", FILES / "reviews", *columns).out.splitlines(),
                         ["[CLS] good , and cheap [SEP]  ->  glad", '[CLS] she said " no " and left [SEP]  ->  angry', "[CLS] plain [SEP]  ->  calm"])
        checked = self.ok_json("data", "check", FILES / "reviews", *columns)
        self.assertEqual((checked["rows"], [c["label"] for c in checked["classes"]]), (3, ["angry", "calm", "glad"]))
        self.assertIn("2500 texts, 3 classes\ncomera train encoder2-nli ", self.ok("data", "suggest", self.set / "data/train-00000-of-00001.parquet").out)

    def test_errors(self):
        self.needs_arrow()
        cut = self.folder / "cut.parquet"
        cut.write_bytes((FILES / "pairs.parquet").read_bytes()[:1500])
        self.fails(3, "data", "check", cut, match="cut.parquet is cut off")
        named = self.folder / "named.parquet"
        named.write_text("text,label\na,1\n")
        self.fails(3, "data", "check", named, match="named.parquet is not a Parquet file")
        self.fails(3, "data", "check", FILES / "reviews", "--text", "tags", match=["column 'tags' cannot be read as text", "why: its type is list<"])
        self.fails(3, "data", "check", FILES / "reviews", "--text", "words", match=["no column 'words'", "why: .*id, review, stars, mood"])
        shutil.copy(FILES / "reviews/data/train-00000-of-00002.parquet", self.folder)
        self.fails(8, "data", "check", self.folder / "train-00000-of-00002.parquet", match=["train-00001-of-00002.parquet is missing", "2 parts"])


if __name__ == "__main__":
    unittest.main()
