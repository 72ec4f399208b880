"""Runs that are used from another working directory, and stores that are moved or copied with their checkpoints."""
import shutil
import unittest
from pathlib import Path

from support import CliTest

ROWS = "text,label\n" + "".join(f"the tide is {word} now,{label}\n" for word, label in [("low", 0), ("high", 1)] * 40)
WORDS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ntide\nis\nlow\nhigh\nnow\n"
SMALL = [f"model.encoder.{name}" for name in ("layers=1", "d_model=16", "heads=2", "d_ff=16", "vocab=11", "positions=12")] + [
    "model.classes=2", "model.length=12", "method.weights=dense", "data.set=rows.csv", "data.vocab=words.txt", "train.steps=6", "train.batch=4",
    "train.eval_every=3", "train.checkpoint_every=3", "train.threads=1"]
TRAIN = ["train", "encoder2-nli", "--quiet", *(part for setting in SMALL for part in ("--set", setting))]


class Moved(CliTest):
    def project(self, name):
        folder = self.folder / name
        folder.mkdir()
        (folder / "rows.csv").write_text(ROWS)
        (folder / "words.txt").write_text(WORDS)
        return folder

    def test_a_run_is_the_same_from_any_working_directory(self):
        here = self.project("here")
        self.ok(*TRAIN, "--name", "relative", "--store", "runs.db", cwd=here)
        store = ["--store", here / "runs.db"]
        shown = self.ok_json("runs", "show", "relative", *store)
        self.assertEqual([shown["config"]["data"][name] for name in ("set", "vocab")], [str(here / "rows.csv"), str(here / "words.txt")])
        self.assertEqual([row["path"] for row in shown["checkpoints"]],
                         [str(here / "checkpoints" / shown["run"] / f"step-{step:09}.safetensors") for step in (3, 6)])
        self.ok("eval", "relative", "--quiet", *store)
        self.ok("reproduce", "relative", "--quiet", *store)
        self.ok("resume", "relative", "--extend", 2, "--quiet", *store)
        self.ok("fork", "relative", "--at-step", 3, "--quiet", *store)

    def test_a_moved_store_has_its_checkpoints(self):
        before, after, copy = self.project("before"), self.folder / "after", self.folder / "copy"
        self.ok(*TRAIN, "--name", "old", "--store", before / "runs.db", cwd=before)
        run = self.ok_json("runs", "show", "old", "--store", before / "runs.db")["run"]
        shutil.copytree(before, copy)
        self.ok("runs", "purge", "old", "--confirm", "old", "--store", copy / "runs.db")
        self.assertEqual(len(list((before / "checkpoints" / run).glob("step-*"))), 2, "those of the copy were purged")
        self.assertFalse((copy / "checkpoints" / run).exists())
        before.rename(after)
        store = ["--store", after / "runs.db"]
        self.assertEqual({row["path"] for row in self.ok_json("runs", "show", "old", *store)["checkpoints"]},
                         {str(path) for path in (after / "checkpoints" / run).glob("step-*")})
        self.ok("eval", "old", "--data", after / "rows.csv", "--quiet", *store)
        self.ok("export", "old", "--to", "safetensors", "-o", self.folder / "old.safetensors", *store)

    def test_data_that_have_moved_are_named_anew(self):
        here = self.project("data")
        store = ["--store", here / "runs.db"]
        self.ok(*TRAIN, "--name", "run", *store, cwd=here)
        (here / "rows.csv").rename(here / "now.csv")
        (here / "words.txt").rename(here / "now.txt")
        for verb in (["resume", "run", "--extend", 2], ["fork", "run", "--steps", 8]):
            self.fails(8, *verb, *store, match="add --set data.set=PATH")
        other = here / "other.csv"
        other.write_text(ROWS.replace("low", "ebbing"))
        self.fails(3, "resume", "run", "--extend", 2, "--set", f"data.set={other}", *store, match="has changed since it was trained")
        self.ok("fork", "run", "--steps", 8, "--set", "data.set=now.csv", "--name", "child", "--quiet", *store, cwd=here)
        self.ok("resume", "run", "--extend", 2, "--set", "data.set=now.csv", "--quiet", *store, cwd=here)
        for run in ("run", "child"):
            self.assertEqual(self.ok_json("runs", "show", run, *store)["config"]["data"]["set"], str(here / "now.csv"))
            self.ok("reproduce", run, "--quiet", *store)
            self.ok("eval", run, "--quiet", *store)
        self.ok("eval", "run", "--step", 3, "--quiet", *store)
        self.ok("fork", "run", "--set", "data.set=other.csv", "--steps", 12, "--name", "on others", "--quiet", *store, cwd=here)
        self.assertEqual(self.ok_json("runs", "show", "on others", *store)["config"]["data"]["set"], str(other))

    def test_rows_that_were_held_out_are_still_the_same(self):
        """With a row more in front, every tenth row is another one, which the run was trained on."""
        here = self.project("longer")
        store = ["--store", here / "runs.db"]
        self.ok(*TRAIN, "--name", "run", *store, cwd=here)
        header, rows = ROWS.split("\n", 1)
        (here / "rows.csv").write_text(f"{header}\nthe tide,0\n{rows}")
        for split in ("dev", "train"):
            self.fails(3, "eval", "run", "--split", split, *store, match=["have changed since it was trained", "--data FILE"])
        self.assertEqual(self.ok_json("eval", "run", "--data", here / "rows.csv", *store)["examples"], 81)

    def test_checkpoints_that_another_store_lists_stay(self):
        """A store that was copied beside the first one, and one that the runs were imported into."""
        here = self.project("shared")
        first, backup, merged = (["--store", here / f"{name}.db"] for name in ("first", "backup", "merged"))
        self.ok(*TRAIN, "--name", "another", "--store", here / "quiet.db", cwd=here)
        quiet = list(here.glob("quiet.db-*"))
        self.ok(*TRAIN, "--name", "kept", *first, cwd=here)
        shutil.copy(here / "first.db", here / "backup.db")
        self.ok("import", here / "first.db", *merged)
        rows = self.ok_json("runs", "show", "kept", *first)
        files = {Path(row["path"]): Path(row["path"]).read_bytes() for row in rows["checkpoints"]}
        # Each goes on by itself: its checkpoints are its own, and what it prunes or replaces are not those of the others.
        for store in (merged, backup):
            self.ok("resume", "kept", "--extend", 2, "--set", "train.keep_checkpoints=1", "--quiet", *store)
            self.ok("resume", "kept", "--from-step", 3, "--set", "train.lr=1e-4", "--quiet", *store)
            self.ok("eval", "kept", "--quiet", *store)
            replaced = [row["run"] for row in self.ok_json("runs", "list", *store)["runs"] if row["name"] == "kept-replaced"]
            self.assertTrue(replaced)
            for run in replaced:
                for row in self.ok_json("runs", "show", run, *store)["checkpoints"]:
                    self.assertTrue(Path(row["path"]).exists(), row)
                self.ok("runs", "purge", run, "--confirm", "kept-replaced", *store)
            own = here / "checkpoints" / store[1].name / rows["run"]
            self.assertTrue(any(own.glob("step-*")))
            purged = self.ok("runs", "purge", "kept", "--confirm", "kept", *store)
            self.assertEqual("not removed" in purged.err, store == backup, purged)
            self.assertFalse(own.parent.exists())
        (here / "apart").mkdir()
        shutil.copy(here / "first.db", here / "apart" / "rows.db")  # without its checkpoints
        (here / "link.db").symlink_to(here / "first.db")
        apart = ["--store", here / "apart" / "rows.db"]
        self.ok("resume", "kept", "--extend", 2, "--set", "train.keep_checkpoints=1", "--quiet", *apart)
        self.ok("runs", "purge", "kept", "--confirm", "kept", *apart)
        self.assertEqual({path: path.read_bytes() for path in files}, files)
        self.assertEqual(list(here.glob("quiet.db-*")), quiet, "whoever looks leaves nothing")
        self.ok("eval", "kept", "--quiet", *first)
        self.assertEqual([row["path"] for row in self.ok_json("runs", "show", "kept", *first)["checkpoints"]], [str(path) for path in files])
        self.ok("runs", "purge", "kept", "--confirm", "kept", *first)
        self.assertFalse(any(path.exists() for path in files), "no other store lists them any more")


if __name__ == "__main__":
    unittest.main()
