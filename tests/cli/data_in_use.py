"""Data files that another program writes, or takes away, while a run trains on them: the run ends with what it has, and resumes later."""
import os
import struct
import time
import unittest
import zlib
from pathlib import Path

from support import CliTest

ROWS = "text,label\n" + "".join(f"the tide is {word} now,{label}\n" for word, label in [("low", 0), ("high", 1)] * 2000)
WORDS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ntide\nis\nlow\nhigh\nnow\n"
SMALL = [f"model.encoder.{name}" for name in ("layers=1", "d_model=16", "heads=2", "d_ff=16", "vocab=11", "positions=12")] + [
    "model.classes=2", "model.length=12", "method.weights=dense", "data.vocab=words.txt", "train.batch=4"]
SLOW = ["train.steps=2000", "train.eval_every=0", "train.checkpoint_every=0", "train.max_steps_per_s=200", "train.threads=1"]


def png(shade):
    """A gray image of 8 x 8."""
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = zlib.compress((b"\0" + bytes([shade] * 8)) * 8)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class DataInUse(CliTest):
    def setUp(self):
        self.place = self.folder / self.id().rpartition(".")[2]
        self.place.mkdir()
        self.use("runs")

    def use(self, store):
        self.database = self.place / f"{store}.db"
        self.stored = ["--store", self.database]

    def trained_until(self, change, preset, *sets):
        """Trains, changes the data after some steps, and returns the error and the step of the checkpoint that is left."""
        settings = [part for setting in [*sets, *SLOW] for part in ("--set", setting)]
        process = self.command("train", preset, "--name", "run", "--events", f"{self.database}.jsonl", "--json", "--quiet", *settings, *self.stored, cwd=self.place)
        events, deadline = Path(f"{self.database}.jsonl"), time.monotonic() + 60
        while not (events.exists() and events.read_text().count("\n") > 40):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll(), "it still trains")
        change()
        out, err = process.communicate(timeout=60)
        row = self.run_row("run", self.database)
        self.assertEqual((row["status"], len(row["checkpoints"])), ("failed", 1), err)
        self.assertGreater(row["step"], 10)
        self.assertEqual(row["checkpoints"][0]["step"], row["step"])
        return process.returncode, out

    def goes_on(self):
        """As if nothing had happened."""
        self.ok("resume", "run", "--set", "train.max_steps_per_s=0", "--quiet", *self.stored)
        self.assertEqual(self.run_row("run", self.database)["step"], 2000)
        self.assertTrue(self.ok_json("reproduce", "run", *self.stored)["identical"])

    def test_a_text_file_is_saved_over(self):
        rows = self.place / "rows.csv"
        (self.place / "words.txt").write_text(WORDS)
        for name, now in {"cut": ROWS[:ROWS.index("\n", 5000) + 1], "longer": ROWS + "the tide is low,0\n", "the same length": ROWS.replace("low", "now")}.items():
            with self.subTest(name):
                self.use(name)
                rows.write_text(ROWS)
                code, out = self.trained_until(lambda: rows.write_text(now), "encoder2-nli", "data.set=rows.csv", *SMALL)
                self.assertEqual(code, 3, out)
                self.assertIn("rows.csv was changed while it was in use", out)
                self.fails(3, "resume", "run", *self.stored, match="has changed since it was trained")
                rows.write_text(ROWS)
                self.goes_on()

    def test_a_file_that_is_replaced_stays_in_use(self):
        rows = self.place / "rows.csv"
        (self.place / "words.txt").write_text(WORDS)
        rows.write_text(ROWS)
        other = self.place / "other.csv"
        other.write_text(ROWS[:5000])
        settings = [part for setting in ["data.set=rows.csv", *SMALL, *SLOW, "train.steps=100"] for part in ("--set", setting)]
        process = self.command("train", "encoder2-nli", "--name", "run", "--events", "events.jsonl", "--quiet", *settings, *self.stored, cwd=self.place)
        events = self.place / "events.jsonl"
        while not (events.exists() and events.read_text().count("\n") > 20):
            self.assertIsNone(process.poll())
        os.replace(other, rows)
        process.communicate(timeout=60)
        self.assertEqual((process.returncode, self.run_row("run", self.database)["step"]), (0, 100))

    def test_pictures_are_away_for_a_while(self):
        pictures = self.place / "pictures"
        for kind, shade in ("dark", 20), ("light", 220):
            (pictures / kind).mkdir(parents=True)
            for i in range(100):
                (pictures / kind / f"{i}.png").write_bytes(png(shade + i % 20))
        away = self.place / "away"
        code, out = self.trained_until(lambda: pictures.rename(away), "mlp-fashion", "data.set=pictures", "train.batch=8", "model.mlp.inputs=64", "model.classes=2",
                                       "model.mlp.hidden=[16,8]")
        self.assertEqual(code, 8, out)
        self.assertIn("cannot read", out)
        away.rename(pictures)
        self.goes_on()


if __name__ == "__main__":
    unittest.main()
