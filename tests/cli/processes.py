"""Runs that several processes train together under mpirun: the bits of one process that computes as many parts, a process that is killed,
and what is refused. Skipped where this build has no MPI, or mpirun is missing."""
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, TIMEOUT, CliTest, Result, Safetensors, environment, images, tiny_encoder

# Some kernels of OpenBLAS round otherwise with other threads.
RUN = ["train", "images.json", "--set", "train.threads=1", "--set", "train.batch=24", "--set", "train.warmup=0", "--set", "train.lr_rank=3e-2",
       "--set", "train.checkpoint_every=0", "--set", "train.eval_every=0", "--set", "data.validation_rows=100", "--set", "method.comera.late_after=30",
       "--set", "method.comera.prune_every=10", "--set", "method.comera.target=0.3", "--quiet"]
# A rate, a bond that is cut and grown, the stage.
EDITS = ["--edit", "15:train.lr_core=1e-3", "--edit", "25:rank.cap.fc0.2=8", "--edit", "40:rank.cap.fc0.2=20", "--edit", "60:stage=early"]


class Processes(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("mpirun"):
            raise unittest.SkipTest("mpirun is missing (Debian: openmpi-bin)")
        mpi = subprocess.run([BIN, "doctor", "--json"], env=environment(cls.folder), capture_output=True, text=True)
        if not json.loads(mpi.stdout)["mpi"]["here"]:
            raise unittest.SkipTest("this build has no MPI")
        images(cls.folder)

    def start(self, *programs, env=None):
        """`programs`: (number, folder, program, arguments), as one run."""
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        for index, (count, folder, program, args) in enumerate(programs):
            command += ([":"] if index else []) + ["-n", str(count), "-wdir", str(folder), program, *map(str, args)]
        # A folder for Open MPI's files, with a short name: a run that ends can remove files of one that starts in the same folder.
        own = tempfile.mkdtemp(prefix="mpi-")
        self.addCleanup(shutil.rmtree, own, ignore_errors=True)
        places = environment(self.folder, **(env or {})) | {"TMPDIR": own}
        return subprocess.Popen(command, env=places, cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self, process):
        out, err = process.communicate(timeout=TIMEOUT)
        return Result(process.args, process.returncode, out, err)

    def together(self, count, *args):
        return self.result(self.start((count, self.folder, BIN, args)))

    def trained_by(self, count, *args):
        result = self.together(count, *args)
        self.assertEqual(result.code, 0, result)
        return result

    def row(self, name):
        return self.ok_json("runs", "show", name)

    def weights(self, name):
        return Safetensors(self.row(name)["checkpoints"][-1]["path"]).tensors

    def stored(self, name):
        """Every value and event that repeats."""
        rows = self.query(f"SELECT n.name, m.step, m.value FROM metrics m JOIN metric_names n USING (metric) JOIN runs r USING (run) WHERE r.name = '{name}' "
                          "AND n.name IN ('train_loss', 'train_objective', 'train_accuracy', 'val_loss', 'val_accuracy', 'rho', 'entries', 'lr_core') ORDER BY 1, 2")
        events = [(e["step"], e["kind"], e["body"]) for e in self.row(name)["events"] if e["kind"] in ("edit", "stage", "truncation", "regrowth")]
        return rows, sorted(events, key=str)

    def same(self, name, other):
        self.assertEqual(self.stored(name), self.stored(other))
        one, two = self.weights(name), self.weights(other)
        self.assertEqual(one.keys(), two.keys())
        self.assertEqual([tensor for tensor in one if one[tensor] != two[tensor]], [])

    def test_1_any_number_has_the_bits_of_one(self):
        args = [*RUN, "--steps", 80, "--set", "train.micro_batches=4", "--set", "train.eval_every=20", "--set", "train.clip_norm=0.5", *EDITS, "--name"]
        self.ok(*args, "one")
        for count in (2, 3, 4):
            document = self.trained_by(count, *args, f"of {count}", "--json").json()
            self.assertEqual((document["status"], document["step"]), ("finished", 80))
            self.assertEqual(document["memory"]["planned_peak_bytes"], document["memory"]["measured_peak_bytes"])
            self.same(f"of {count}", "one")
            # What `plan` counts is what a process takes, and sends until bonds are cut.
            plan = self.ok_json("plan", *RUN[1:-1], "--set", "train.micro_batches=4", "--set", "train.clip_norm=0.5", "--processes", count, "--link", 2)
            self.assertEqual(plan["memory"]["peak_bytes"], document["memory"]["planned_peak_bytes"])
            network = plan["network"]
            self.assertEqual(network["processes"], count)
            self.assertAlmostEqual(network["ms"], network["sent_bytes"] / 2e6)
            sent = self.ok_json("get", f"of {count}", "--metric", "sent_bytes")["values"]
            self.assertEqual(sent[0], network["sent_bytes"])
            self.assertLessEqual(max(sent), network["sent_bytes"])
            self.assertEqual([e["body"].get("processes") for e in self.row(f"of {count}")["events"] if e["kind"] == "start"], [count])
        self.assertTrue(self.ok_json("reproduce", "of 3")["identical"])
        kinds = {kind for _, kind, _ in self.stored("one")[1]}
        self.assertLessEqual({"edit", "stage", "truncation", "regrowth"}, kinds)

    def test_2_a_batch_has_a_part_a_process(self):
        self.trained_by(2, *RUN, "--steps", 20, "--name", "two")
        self.assertEqual(self.row("two")["config"]["train"]["micro_batches"], 2)
        self.ok(*RUN, "--steps", 20, "--set", "train.micro_batches=2", "--name", "in two parts")
        self.same("two", "in two parts")
        self.trained_by(3, "fork", "two", "--at-step", 10, "--name", "fork of three", "--set", "train.micro_batches=3", "--quiet")
        self.ok("fork", "two", "--at-step", 10, "--name", "fork of one", "--set", "train.micro_batches=3", "--quiet")
        self.same("fork of three", "fork of one")

    @staticmethod
    def processes_of(mpirun):
        """Pids by the number that mpirun gave them."""
        found = {}
        for child in Path(f"/proc/{mpirun.pid}/task/{mpirun.pid}/children").read_text().split():
            try:
                for text in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                    if text.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(text.split(b"=")[1])] = int(child)
            except OSError:  # it has ended
                pass
        return found

    def until_step(self, process, name, step):
        deadline = time.monotonic() + 120
        while True:
            self.assertIsNone(process.poll(), process.poll() is not None and self.result(process))
            self.assertLess(time.monotonic(), deadline)
            if self.store.exists() and self.query(f"SELECT 1 FROM metrics JOIN runs USING (run) WHERE name = '{name}' AND metrics.step >= {step} LIMIT 1"):
                return
            time.sleep(0.02)

    def test_3_a_process_that_is_killed_ends_the_run_and_it_is_resumed(self):
        # Slow enough to be killed in the middle; a checkpoint every few steps.
        args = [*RUN, "--steps", 120, "--set", "train.micro_batches=3", "--set", "train.checkpoint_every=7", "--set", "train.eval_every=20", *EDITS]
        self.ok(*args, "--name", "straight")
        draw = random.Random(27)
        for attempt, (count, killed, then) in enumerate([(2, 1, 3), (2, 0, 1), (3, 2, 2), (3, 0, 3)]):
            name = f"killed {attempt}"
            process = self.start((count, self.folder, BIN, [*args, "--set", "train.max_steps_per_s=60", "--name", name]))
            self.until_step(process, name, draw.randrange(10, 90))
            began = time.monotonic()
            os.kill(self.processes_of(process)[killed], signal.SIGKILL)
            result = self.result(process)
            self.assertLess(time.monotonic() - began, 30)
            self.assertNotEqual(result.code, 0, result)
            row = self.row(name)
            self.assertIn(row["status"], ("interrupted", "stopped"), f"{count} processes, {killed} killed")
            last = [checkpoint["path"] for checkpoint in row["checkpoints"] if Path(checkpoint["path"]).exists()][-1]
            self.assertEqual(Safetensors(last).tensors.keys(), self.weights("straight").keys())
            more = ["resume", name, "--set", "train.max_steps_per_s=0", "--quiet"]
            again = self.together(then, *more) if then > 1 else self.comera(*more)
            self.assertEqual(again.code, 0, again)
            self.assertEqual(self.row(name)["step"], 120)
            self.assertEqual([tensor for tensor, value in self.weights(name).items() if value != self.weights("straight")[tensor]], [])
            resumed = [e["body"].get("processes") for e in self.row(name)["events"] if e["kind"] == "resume"]
            self.assertEqual(resumed, [then if then > 1 else None])

    def test_4_a_signal_to_process_0_stops_all_with_a_checkpoint(self):
        process = self.start((2, self.folder, BIN, [*RUN, "--steps", 100000, "--name", "stopped"]))
        self.until_step(process, "stopped", 5)
        os.kill(self.processes_of(process)[0], signal.SIGINT)
        result = self.result(process)
        self.assertEqual(result.code, 130, result)
        row = self.row("stopped")
        self.assertEqual((row["status"], row["checkpoints"][-1]["step"]), ("stopped", row["step"]))
        limited = self.together(2, "resume", "stopped", "--max-time", "1s", "--quiet", "--json")
        self.assertEqual((limited.code, limited.json()["status"]), (0, "stopped"), limited)

    def refused(self, code, what, *programs):
        result = self.result(self.start(*programs))
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.err.count("error: "), 1, result)
        self.assertRegex(result.err, what)

    def test_5_what_is_refused_is_said_once(self):
        here = lambda count, *more: (count, self.folder, BIN, [*RUN, "--steps", 5, *more])
        self.refused(2, "process 1 has another config or other options than process 0", here(1), here(1, "--seed", 5))
        self.refused(3, "5 processes cannot share a batch of 24", here(5))
        self.refused(3, "3 processes cannot share a batch of 2 parts", here(3, "--set", "train.micro_batches=2"))
        self.assertIn("--link needs --processes", self.comera("plan", "demo", "--link", 2).err)
        self.assertIn("goes with one method", self.comera("plan", "demo", "--processes", 2, "--all-methods").err)
        self.refused(3, "cannot use method.update backward", here(2, "--set", "method.update=backward"))
        self.refused(4, "cuda|CUDA", here(2, "--device", "cuda:90"))
        self.refused(8, "no config 'nowhere'", (2, self.folder, BIN, ["train", "nowhere"]))
        self.refused(2, "a sweep starts its runs itself", (2, self.folder, BIN, ["sweep", "any.json"]))
        self.ok(*RUN, "--steps", 5, "--name", "of one part")
        self.refused(3, "2 processes cannot share a batch of 1 part", (2, self.folder, BIN, ["resume", "of one part", "--extend", 5, "--quiet"]))

    def test_6_other_data_are_refused(self):
        """The same command as on two machines, whose sets of one name differ."""
        programs = []
        for rows in (60, 61):
            folder = self.folder / f"of {rows} rows"
            config = tiny_encoder(folder / "comera" / "data", rows)
            config.write_text(json.dumps(json.loads(config.read_text()) | {"data": {"set": "tiny-data"}}))
            programs.append((1, self.folder, "env", [f"XDG_DATA_HOME={folder}", BIN, "train", config, "--steps", 3, "--set", "train.threads=1", "--quiet"]))
        self.refused(2, "process 1 has other data than process 0", *programs)
        self.assertEqual(self.result(self.start(programs[0], programs[0])).code, 0)

    def test_7_weights_of_their_own_between_means(self):
        args = [*RUN, "--steps", 60, "--set", "train.micro_batches=2", "--set", "train.sync_every=7", "--set", "train.clip_norm=0.5", *EDITS[:-2], "--name"]
        self.trained_by(2, *args, "local")
        self.ok(*args, "local in threads")
        self.same("local", "local in threads")
        self.assertTrue(self.ok_json("reproduce", "local")["identical"])
        args[args.index("train.micro_batches=2")] = "train.micro_batches=4"
        self.refused(3, "2 processes cannot average the weights of 4 parts", (2, self.folder, BIN, [*args, "of four parts"]))

    def test_8_a_program_without_mpi_says_so(self):
        alone = self.folder / "alone" / "comera"
        alone.parent.mkdir()
        shutil.copy(BIN, alone)
        self.refused(4, "cannot train with other processes", (2, self.folder, str(alone), [*RUN, "--steps", 5]))
        found = subprocess.run([alone, "doctor"], env=environment(self.folder), cwd=self.folder, capture_output=True, text=True)
        self.assertRegex(found.stdout, r"MPI +not here")
        self.assertEqual(subprocess.run([alone, *map(str, RUN), "--steps", "5"], env=environment(self.folder), cwd=self.folder, capture_output=True).returncode, 0)


if __name__ == "__main__":
    unittest.main()
