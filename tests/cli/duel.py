"""Methods against each other: the same start and data for all, equal memory, and a duel that continues where it was stopped."""
import json
import re
import signal
import unittest
import xml.etree.ElementTree as ElementTree

from support import CliTest

NUMBER = (int, float)
CONFIG = {
    "model": {"kind": "mlp", "classes": 10, "mlp": {"inputs": 784, "hidden": [48, 32], "dropout": 0.1}, "tt": {"ffn_in": {"rank": 8}}},
    "data": {"set": "fashion-mnist-demo", "train_rows": 256, "validation_rows": 100},
    "train": {"batch": 24, "lr_core": 2e-3, "lr_rank": 2e-3, "lr": 1e-3, "eval_every": 0, "steps": 12},
}
METHODS = ["adamw", "galore", "adafactor", "comera"]
MEASURED = ("step_ms", "time_s")


class Duel(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.config = cls.folder / "net.json"
        cls.config.write_text(json.dumps(CONFIG))
        cls.figure = cls.folder / "pareto.svg"
        cls.command_line = ["duel", cls.config, "--methods", ",".join(METHODS), "--seeds", 2, "--seed", 5, "-o", cls.figure]
        cls.first = cls.comera(*cls.command_line, "--json", "--quiet")
        assert cls.first.code == 0, cls.first

    def losses(self, run, store=None):
        return self.query(f"SELECT metrics.step, value FROM metrics JOIN metric_names USING(metric) JOIN runs USING(run) WHERE id = '{run}' AND metric_names.name = 'train_loss' ORDER BY metrics.step", store)

    def runs_of(self, document, seed):
        """Method -> id of its run with this seed."""
        return {method["method"]: run["run"] for method in document["methods"] for run in method["runs"] if run["seed"] == seed}

    def test_the_document(self):
        document = self.first.json()
        self.assertEqual({key: document[key] for key in ("schema_version", "config", "memory_limit_bytes", "batch", "seed", "seeds", "figure")},
                         {"schema_version": 1, "config": str(self.config), "memory_limit_bytes": None, "batch": 24, "seed": 5, "seeds": 2, "figure": str(self.figure)})
        self.assertEqual([method["method"] for method in document["methods"]], METHODS)
        for method in document["methods"]:
            with self.subTest(method["method"]):
                self.assertEqual(set(method), {"method", "title", "status", "reason", "rank", "rank_setting", "micro_batches", "parameters", "memory", "val_accuracy", "val_loss", "step_ms", "time_s", "pareto",
                                               "runs"})
                self.assertEqual((method["status"], method["reason"], method["micro_batches"]), ("finished", "", 1))
                self.assertEqual(method["memory"]["planned_peak_bytes"], method["memory"]["measured_peak_bytes"])
                self.assertIs(method["memory"]["exceeds_limit"], False)
                self.assertIsInstance(method["step_ms"]["median"], NUMBER)
                self.assertGreater(method["parameters"]["all"], 0)
                self.assertEqual([(run["seed"], run["status"], run["step"]) for run in method["runs"]], [(5, "finished", 12), (6, "finished", 12)])
                for score in ("val_accuracy", "val_loss"):
                    a, b = (run[score] for run in method["runs"])
                    self.assertEqual(method[score]["runs"], 2)
                    self.assertAlmostEqual(method[score]["mean"], (a + b) / 2)
                    self.assertAlmostEqual(method[score]["deviation"], abs(a - b) / 2 ** 0.5)
        self.assertEqual([(method["rank"], method["rank_setting"]) for method in document["methods"]],
                         [(None, None), (128, "method.galore.rank"), (None, None), (8, "model.tt")])
        front = [method for method in document["methods"] if method["pareto"]]
        self.assertTrue(front)
        least = min(document["methods"], key=lambda method: (method["memory"]["measured_peak_bytes"], -method["val_accuracy"]["mean"]))
        self.assertIn(least, front)
        compared = re.fullmatch(r"comera-studio --compare (\S+)", document["compare"])[1].split(",")
        self.assertEqual(set(compared), set(self.runs_of(document, 5).values()))

    def test_the_figure_names_the_methods(self):
        texts = " ".join(text.text or "" for text in ElementTree.parse(self.figure).iter("{http://www.w3.org/2000/svg}text"))
        for title in ("AdamW", "GaLore", "Adafactor", "CoMERA"):
            self.assertIn(title, texts)
        png = self.folder / "pareto.png"
        self.ok("duel", self.config, "--methods", "adamw", "--seed", 5, "--quiet", "-o", png)
        self.assertEqual(png.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_all_begin_alike_and_see_the_same_data(self):
        document = self.first.json()
        for seed in (5, 6):
            first = {method: self.losses(run)[0] for method, run in self.runs_of(document, seed).items()}
            self.assertEqual(first["adamw"], first["galore"])
            self.assertEqual(first["adamw"], first["adafactor"])
        # Without a learning rate each loss is that of the first weights on the batch of its step: equal losses are equal batches.
        still = self.ok_json("duel", self.config, "--methods", "adamw,adam8bit,galore,coap,flora", "--seeds", 2, "--quiet", "--set", "train.lr=0")
        series = {seed: [self.losses(run) for run in self.runs_of(still, seed).values()] for seed in (1, 2)}
        for losses in series.values():
            self.assertEqual(len(losses), 5)
            self.assertGreater(len({value for _, value in losses[0]}), 6, "the batches differ from step to step")
            for other in losses[1:]:
                self.assertEqual(losses[0], other)
        self.assertNotEqual(series[1][0], series[2][0])

    def test_the_same_command_again_trains_nothing(self):
        before = self.query("SELECT count(*), sum(active_s) FROM runs")
        again = self.comera(*self.command_line, "--json")
        self.assertEqual(again.code, 0, again)
        self.assertEqual(again.json(), self.first.json())
        self.assertEqual(self.query("SELECT count(*), sum(active_s) FROM runs"), before)
        self.assertEqual(again.err.count("finished already"), 8)
        # More seeds and other methods add to it.
        more = self.ok_json("duel", self.config, "--methods", "adamw,came", "--seeds", 3, "--seed", 5, "--quiet")
        self.assertEqual(self.query("SELECT count(*) FROM runs")[0][0], before[0][0] + 1 + 3)
        self.assertEqual([run["run"] for run in more["methods"][0]["runs"]][:2], [run["run"] for run in self.first.json()["methods"][0]["runs"]])

    def test_a_killed_duel_continues(self):
        # Slow enough to be met in the middle of a run; the limit changes no number.
        args = ["duel", self.config, "--methods", "adamw,comera", "--steps", 60, "--set", "train.checkpoint_every=5", "--set", "train.max_steps_per_s=100", "--json"]
        store = self.folder / "killed.db"
        whole = self.ok_json(*args, "--quiet", "--store", self.folder / "whole.db")
        for number, at in ((signal.SIGINT, "adamw"), (signal.SIGKILL, "comera")):
            process = self.command(*args, "--store", store)
            place = ""
            for line in process.stderr:
                place = line if line.startswith("[") else place
                if line.startswith("step ") and at in place:
                    process.send_signal(number)
                    break
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number if number == signal.SIGKILL else 130, err)
            if number == signal.SIGINT:
                adamw, tensor_trains = json.loads(out)["methods"]
                self.assertEqual((adamw["status"], [run["status"] for run in adamw["runs"]]), ("unfinished", ["stopped"]))
                self.assertEqual((tensor_trains["status"], tensor_trains["runs"]), ("unfinished", []), "it is not begun")
                self.assertIn("the same command continues", err)
        ended = self.ok_json(*args, "--quiet", "--store", store)
        self.assertEqual(self.query("SELECT count(*) FROM runs", store), [(2,)], "each run was continued, none begun again")
        for method, other in zip(whole["methods"], ended["methods"]):
            self.assertEqual({key: value for key, value in method.items() if key not in (*MEASURED, "runs")}, {key: value for key, value in other.items() if key not in (*MEASURED, "runs")})
            self.assertEqual(self.losses(method["runs"][0]["run"], self.folder / "whole.db"), self.losses(other["runs"][0]["run"], store))

    def test_equal_memory(self):
        plan = lambda *sets: self.ok_json("plan", self.config, *(part for text in sets for part in ("--set", text)))["memory"]["peak_bytes"]
        limit = plan("method.weights=dense", "method.optimizer=adam8bit", "train.micro_batches=1") - 1
        self.assertLess(plan("method.weights=dense", "method.optimizer=adafactor"), limit)
        document = self.ok_json("duel", self.config, "--memory", limit, "--methods", "adamw,adam8bit,adafactor,comera,lora", "--steps", 4, "--quiet")
        self.assertEqual(document["memory_limit_bytes"], limit)
        trained = [method for method in document["methods"] if method["status"] == "finished"]
        for method in trained:
            self.assertLessEqual(method["memory"]["planned_peak_bytes"], limit)
            self.assertEqual(method["memory"]["planned_peak_bytes"], method["memory"]["measured_peak_bytes"])
            config = self.run_row(method["runs"][0]["run"])["config"]
            self.assertEqual((config["train"]["batch"], config["train"]["micro_batches"]), (24, method["micro_batches"]))
            if method["rank"] is not None:
                self.assertGreater(method["rank"], 8, "spare bytes go into the rank")
        self.assertLessEqual({"adafactor", "comera"}, {method["method"] for method in trained})
        refused = {method["method"]: method for method in document["methods"] if method["status"] == "does_not_fit"}
        self.assertIn("adamw", refused)
        self.assertRegex(refused["adamw"]["reason"], r"^needs at least [\d.,]+ MiB$")
        self.assertGreater(refused["adamw"]["memory"]["planned_peak_bytes"], limit)
        self.assertEqual(refused["adamw"]["runs"], [])

    def test_more_memory_after_a_cut_is_reported(self):
        # Bonds of this net fall so far that another order of contraction becomes the fastest, which takes more.
        cut = json.loads(json.dumps(CONFIG))
        cut["model"]["mlp"]["hidden"] = [32, 16]
        cut["method"] = {"comera": {"late_after": 10, "target": 0.3, "prune_every": 10, "prune_dead_share": 0.05}}
        cut["train"].update(batch=32, steps=80, lr_rank=5e-2)
        path = self.folder / "cut.json"
        path.write_text(json.dumps(cut))
        limit = self.ok_json("plan", path)["memory"]["peak_bytes"]
        args = ["duel", path, "--methods", "comera", "--memory", limit, "--quiet"]
        memory = self.ok_json(*args)["methods"][0]["memory"]
        self.assertLessEqual(memory["planned_peak_bytes"], limit)
        self.assertGreater(memory["measured_peak_bytes"], limit)
        self.assertIs(memory["exceeds_limit"], True)
        self.assertIn("more than planned after a cut of ranks", self.ok(*args).out)

    def test_a_run_that_finds_no_memory_fails_alone(self):
        huge = json.loads(json.dumps(CONFIG))
        huge["model"]["mlp"]["hidden"] = [1 << 19, 1 << 19]  # terabytes when dense
        huge["model"]["tt"]["ffn_in"]["rank"] = 1
        huge["train"].update(batch=1, steps=2)
        huge["data"].update(train_rows=8, validation_rows=2)
        path = self.folder / "huge.json"
        path.write_text(json.dumps(huge))
        for _ in range(2):  # begun again it is the same run
            result = self.comera("duel", path, "--methods", "adamw,comera", "--json", "--quiet")
            self.assertEqual(result.code, 5, result)
            adamw, tensor_trains = result.json()["methods"]
            self.assertEqual((adamw["status"], tensor_trains["status"]), ("failed", "finished"))
            self.assertRegex(adamw["reason"], r"^out of memory: the run needs \d+ MiB, \d+ MiB are free$")
            self.assertEqual(len(adamw["runs"]), 1)
            self.assertEqual(result.json()["compare"], "comera-studio --compare " + tensor_trains["runs"][0]["run"])
        self.assertEqual(self.query("SELECT count(*) FROM runs WHERE name LIKE 'huge %'"), [(2,)])

    def test_a_run_that_diverges_is_a_result(self):
        figure = self.folder / "diverged.svg"
        args = ["duel", self.config, "--methods", "adamw,came", "--steps", 20, "--set", "train.lr=10", "--set", "method.adam.weight_decay=1", "-o", figure]
        document = self.ok_json(*args, "--quiet")
        for method in document["methods"]:
            self.assertEqual(method["status"], "diverged")
            self.assertRegex(method["reason"], r"^the loss is (NaN|infinite) at step \d+$")
            self.assertEqual(method["val_accuracy"], {"mean": None, "deviation": None, "runs": 0})
            self.assertFalse(method["pareto"])
        self.assertEqual((document["figure"], figure.exists()), (None, False))
        again = self.ok(*args)
        self.assertEqual(again.err.count("diverged already"), 2, "it would diverge again")
        self.assertIn("no figure", again.err)

    def test_the_table(self):
        table = self.ok(*self.command_line, "--quiet").out.splitlines()
        self.assertRegex(table[0], r"^method +rank +micro-batches +parameters +planned +taken +accuracy +deviation +loss +step +time")
        self.assertEqual([line.split()[0] for line in table[1:]], METHODS)
        plain = self.ok(*self.command_line, "--quiet", "--plain").out.splitlines()
        self.assertEqual({line.count("\t") for line in plain}, {11})
        self.assertIn("comera-studio --compare r-", self.ok(*self.command_line).err)

    def test_wrong_input(self):
        self.fails(2, "duel", self.config, "--memory", "64 mib", match=["'64 mib' is not a size of memory", "for example 64MiB"])
        self.fails(2, "duel", self.config, "--methods", "adamw,adamw", match="method 'adamw' is given twice")
        self.fails(8, "duel", self.config, "--methods", "adamv", match="did you mean 'adamw'")
        self.fails(2, "duel", self.config, "-o", self.folder / "pareto.pdf", match=r"does not end in \.svg or \.png")
        self.fails(7, "duel", self.config, "-o", self.folder / "none" / "pareto.svg", match="cannot write")
        self.fails(5, "duel", self.config, "--memory", "10kB", "--methods", "adamw,comera", match=["no method fits into", "the smallest, comera, needs at least"])
        self.fails(3, "duel", self.config, "--methods", "adalomo", "--set", "train.clip_norm=1", match=["no method can be trained", "adalomo: method.update: backward"])
        self.assertEqual(self.query("SELECT count(*) FROM runs WHERE name LIKE '%adalomo%'"), [(0,)])


if __name__ == "__main__":
    unittest.main()
