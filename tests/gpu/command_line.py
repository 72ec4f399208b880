"""The program on a CUDA device: a run that is killed twice and resumed ends with the bytes of one that was not, and a
finished one is reproduced. COMERA_BIN is the program whose GPU is in software (tests/gpu/ptx), or the usual one on a machine
with a GPU (experiments/gpu/check.sh); a fast device needs more steps to be killed in time: COMERA_TEST_STEPS."""
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from support import BIN, QUICK, CliTest, Safetensors  # noqa: E402

STEPS = int(os.environ.get("COMERA_TEST_STEPS", 30))
# The late stage, at its published pace, and cuts between the checkpoint and the end.
TRAIN = ["train", "demo", "--device", "cuda:0", "--steps", STEPS, "--seed", 3, "--quiet", *QUICK, "--set", f"train.checkpoint_every={STEPS // 3}",
         "--set", "train.lr_rank=1e-1", "--set", "train.lr_rank_late=0", "--set", "method.comera.mode=reference", "--set", "method.comera.late_halving=0", "--set", "method.comera.target=0.2", "--set", f"method.comera.late_after={STEPS // 3 + 1}", "--set", "method.comera.prune_every=6", "--set", "method.comera.prune_dead_share=0.01"]


class OnADevice(CliTest):
    def last(self, run):
        row = self.run_row(run)
        self.assertEqual((row["status"], row["step"]), ("finished", STEPS))
        self.assertLessEqual({"stage", "truncation"}, {event["kind"] for event in row["events"]})
        return Safetensors(row["checkpoints"][-1]["path"]).tensors

    def kill_after_checkpoint(self, process, step, but=None):
        """Kills the process once its run, any but `but`, has a checkpoint of `step` or later; the run."""
        while process.poll() is None:
            for row in self.ok_json("runs", "list")["runs"]:
                if row["run"] != but and any(checkpoint["step"] >= step for checkpoint in self.run_row(row["run"])["checkpoints"]):
                    process.kill()
                    process.communicate()
                    self.assertLess(self.run_row(row["run"])["step"], STEPS)
                    return row["run"]
            time.sleep(0.02)
        self.fail("it ended before it could be killed: " + str(process.communicate()))

    def test_a_killed_run_ends_with_the_same_bytes(self):
        whole = self.ok_json(*TRAIN)["run"]
        self.assertRegex(self.ok("reproduce", whole).out, "identical")
        broken = self.kill_after_checkpoint(self.command(*TRAIN), STEPS // 3, but=whole)
        self.kill_after_checkpoint(self.command("resume", broken, "--quiet"), STEPS // 3 * 2, but=whole)
        self.ok("resume", broken, "--quiet")
        (start,) = [event for event in self.run_row(broken)["events"] if event["kind"] == "start"]
        self.assertRegex(start["body"]["blas"], r"^cuBLASLt \d+ on \d+ multiprocessors$")
        expected, found = self.last(whole), self.last(broken)
        self.assertEqual(set(expected), set(found))
        for name, tensor in expected.items():
            self.assertTrue(tensor == found[name], f"{name} differs")

    @unittest.skipUnless("in_software" in BIN, "of the GPU in software")
    def test_devices_are_listed(self):
        self.assertEqual(self.ok_json("doctor")["cuda"]["devices"], ["GPU in software"] * 3)
        self.fails(4, "train", "demo", "--device", "cuda:3", match="this machine has 3")


if __name__ == "__main__":
    unittest.main()
