"""The program with a CUDA device, the one in software (tests/gpu/ptx): a run that is killed and resumed on it ends with the bytes
of one that was not, and a finished one is reproduced."""
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from support import QUICK, CliTest, Safetensors  # noqa: E402

STEPS = 30
# The late stage and cuts between the checkpoint and the end.
TRAIN = ["train", "demo", "--device", "cuda:0", "--steps", STEPS, "--seed", 3, "--quiet", *QUICK, "--set", "train.checkpoint_every=10",
         "--set", "train.lr_rank=1e-1", "--set", "method.comera.target=0.2", "--set", "method.comera.late_after=11", "--set", "method.comera.prune_every=6", "--set", "method.comera.prune_dead_share=0.01"]


class OnADevice(CliTest):
    def last(self, run):
        row = self.run_row(run)
        self.assertEqual((row["status"], row["step"]), ("finished", STEPS))
        self.assertLessEqual({"stage", "truncation"}, {event["kind"] for event in row["events"]})
        return Safetensors(row["checkpoints"][-1]["path"]).tensors

    def test_a_run_that_is_killed_goes_on(self):
        whole = self.ok_json(*TRAIN)["run"]
        self.assertRegex(self.ok("reproduce", whole).out, "identical")
        process = self.command(*TRAIN)
        broken = None
        while process.poll() is None:  # until its first checkpoint
            others = [row["run"] for row in self.ok_json("runs", "list")["runs"] if row["run"] != whole]
            if others and self.run_row(others[0])["checkpoints"]:
                broken = others[0]
                process.kill()
            time.sleep(0.05)
        process.communicate()
        self.assertIsNotNone(broken, "it ended before it could be killed")
        self.assertLess(self.run_row(broken)["step"], STEPS)
        self.ok("resume", broken, "--quiet")
        expected, found = self.last(whole), self.last(broken)
        self.assertEqual(set(expected), set(found))
        for name, tensor in expected.items():
            self.assertTrue(tensor == found[name], f"{name} differs")

    def test_devices_are_listed(self):
        self.assertEqual(self.ok_json("doctor")["cuda"]["devices"], ["GPU in software"])
        self.fails(4, "train", "demo", "--device", "cuda:1", match="this machine has 1")


if __name__ == "__main__":
    unittest.main()
