"""The form of every verb's output: the fixed names scripts rely on, one JSON document, plain records, help, colours."""
import contextlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, QUICK, CliTest, environment, tiny_encoder

NUMBER = (int, float)
VERBS = ["train", "resume", "fork", "eval", "predict", "plan", "duel", "sweep", "runs", "get", "ranks", "query", "export", "import", "reproduce", "data", "config", "bench", "doctor", "completion"]


class Json(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = cls.comera("train", "demo", "--steps", 40, "--seed", 5, "--set", "train.lr_core=3e-3", "--store", cls.store, "--name", "X", "--tag", "t", "--device", "cpu", "--json",
                                 *QUICK)
        assert cls.trained.code == 0, cls.trained

    def check(self, document, wanted):
        """`wanted`: dotted name -> type or types; bool is no number."""
        self.assertEqual(document["schema_version"], 1)
        self.assertEqual(next(iter(document)), "schema_version")
        for path, types in wanted.items():
            value = document
            for part in path.split("."):
                self.assertIn(part, value, f"{path} in {json.dumps(document)[:1500]}")
                value = value[part]
            self.assertIsInstance(value, types, path)
            if types in (int, NUMBER):
                self.assertNotIsInstance(value, bool, path)

    def test_train(self):
        document = self.trained.json()
        self.check(document, {"run": str, "name": str, "status": str, "step": int, "steps": int, "stage": str, "metrics.train_loss": NUMBER, "metrics.val_loss": NUMBER,
                              "metrics.val_accuracy": NUMBER, "best.step": int, "best.val_accuracy": NUMBER, "size.entries": int, "size.bytes": int,
                              "size.compression": NUMBER, "memory.planned_peak_bytes": int, "memory.measured_peak_bytes": int, "memory.measured_by_purpose": dict,
                              "step_ms.median": NUMBER, "step_ms.p95": NUMBER, "tokens_per_s": NUMBER, "device": str})
        self.assertEqual((document["status"], document["step"], document["stage"], document["name"]), ("finished", 40, "early", "X"))
        self.assertEqual(document["memory"]["planned_peak_bytes"], document["memory"]["measured_peak_bytes"])
        self.assertEqual(sum(document["memory"]["measured_by_purpose"].values()), document["memory"]["measured_peak_bytes"])
        self.assertLessEqual(document["step_ms"]["median"], document["step_ms"]["p95"])
        self.assertNotIn("store_problem", document)
        config = self.run_row("X")["config"]
        self.assertEqual((config["train"]["seed"], config["train"]["lr_core"], config["train"]["steps"], config["train"]["device"]), (5, 3e-3, 40, "cpu"))
        self.assertEqual(self.run_row("X")["tags"], ["t"])

    def test_resume_without_steps_keeps_the_values(self):
        first = self.trained.json()
        listed = [run for run in self.ok_json("runs", "list")["runs"] if run["name"] == "X"][0]
        document = self.ok_json("resume", "X", "--quiet")
        self.assertEqual(document["metrics"], first["metrics"])
        self.assertEqual(document["size"], first["size"])
        after = [run for run in self.ok_json("runs", "list")["runs"] if run["name"] == "X"][0]
        listed.pop("step_ms"), after.pop("step_ms")  # of this session
        self.assertEqual(after, listed)

    def test_plan(self):
        document = self.ok_json("plan", "demo")
        self.check(document, {"parameters.trainable": int, "parameters.tensorised": int, "parameters.dense_equivalent": int, "memory.peak_bytes": int, "memory.by_purpose": dict,
                              "flops.step": NUMBER, "layers": list})
        self.assertEqual(sum(document["memory"]["by_purpose"].values()), document["memory"]["peak_bytes"])
        # What was planned is what training took.
        self.assertEqual(document["memory"]["peak_bytes"], self.trained.json()["memory"]["measured_peak_bytes"])
        self.assertEqual(sum(layer["entries"] for layer in document["layers"]), document["parameters"]["tensorised"])

    def test_plan_of_every_method(self):
        options = ("--set", "train.batch=24", "--set", "train.clip_norm=1")
        document = self.ok_json("plan", "demo", "--all-methods", *options)
        self.check(document, {"config": str, "method": str, "methods": list})
        self.assertEqual(document["method"], "comera")
        planned, refused = [], []
        for method in document["methods"]:
            self.assertFalse(refused and "memory" in method, "refused ones are last")
            (refused if "refused" in method else planned).append(method)
        self.assertEqual([method["method"] for method in refused], ["adalomo", "lomo"])  # they have no norm to clip
        self.assertRegex(refused[0]["refused"], r"^method\.update: backward: \S.*$")
        self.assertGreater(len(planned), 15)
        for method in planned:
            self.check({"schema_version": 1, **method}, {"method": str, "title": str, "memory.peak_bytes": int, "memory.by_purpose": dict, "parameters": int, "trainable": int, "flops": NUMBER})
            self.assertEqual(sum(method["memory"]["by_purpose"].values()), method["memory"]["peak_bytes"])
        peaks = [method["memory"]["peak_bytes"] for method in planned]
        self.assertEqual(peaks, sorted(peaks))
        # The row of the config's own method is its plan; another one's is the plan of a config with that method.
        rows = {method["method"]: method for method in planned}
        for row, sets in (("comera", []), ("galore", ["--set", "method.weights=dense", "--set", "method.optimizer=galore"])):
            alone = self.ok_json("plan", "demo", *options, *sets)
            self.assertEqual((rows[row]["memory"], rows[row]["parameters"], rows[row]["trainable"], rows[row]["flops"]),
                             (alone["memory"], alone["parameters"]["all"], alone["parameters"]["trainable"], alone["flops"]["step"]), row)
        human = self.ok("plan", "demo", "--all-methods", *options).out.splitlines()
        plain = [line.split("\t") for line in self.ok("plan", "demo", "--all-methods", "--plain", *options).out.splitlines()]
        self.assertEqual(human[0].split(), ["method", "weights", "gradients", "optimizer", "activations", "workspace", "data", "peak", "parameters", "trained"])
        self.assertEqual(len(human), len(plain) + 1)
        self.assertEqual({len(line) for line in plain}, {11})
        self.assertEqual([line[0] for line in plain], [method["method"] for method in document["methods"]])
        self.assertEqual([line[0] for line in plain if line[-1] == "this config"], ["comera"])
        self.assertTrue(plain[-1][-1].startswith("refused: method.update: backward: "), plain[-1])
        for line in plain[:len(planned)]:
            sizes = [float(value.removesuffix(" MiB").replace(",", "")) for value in line[1:8]]
            self.assertAlmostEqual(sum(sizes[:-1]), sizes[-1], delta=0.002 * sizes[-1])

    def test_plan_of_the_published_model(self):
        parameters = self.ok_json("plan", "encoder6-mnli")["parameters"]
        self.assertEqual((parameters["trainable"], parameters["tensorised"], parameters["dense_equivalent"]), (1490157, 1026528, 66957315))

    def test_eval_and_predict(self):
        document = self.ok_json("eval", "X")
        self.check(document, {"accuracy": NUMBER, "loss": NUMBER, "examples": int})
        self.assertEqual(document["examples"], 2000)
        given = self.ok_json("eval", "X", "--data", "fashion-mnist-10k", "--split", "train")
        self.assertEqual(given["examples"], 10000)
        output = self.folder / "predictions.jsonl"
        written = self.ok_json("predict", "X", "--data", "fashion-mnist-10k", "-o", output)
        self.assertEqual(written["rows"], 2000)
        lines = [json.loads(line) for line in output.read_text().splitlines()]
        self.assertEqual([line["row"] for line in lines], list(range(2000)))
        for line in lines:
            self.assertEqual(len(line["logits"]), 10)
            self.assertEqual(int(line["label"]), max(range(10), key=lambda k: line["logits"][k]))
        to_stdout = self.ok("predict", "X", "--data", "fashion-mnist-10k").out
        self.assertEqual(to_stdout, output.read_text())

    def test_reproduce(self):
        document = self.ok_json("reproduce", "X")
        self.check(document, {"run": str, "identical": bool, "first_difference": type(None), "steps": int, "values": int, "weights_compared": bool,
                              "trained_with.program": str, "trained_with.device": str, "trained_with.blas": str})
        self.assertEqual(document["trained_with"], document["computed_with"])
        version = self.ok_json("doctor")
        self.assertEqual(document["computed_with"]["program"], f"{version['version']} (commit {version['commit']})")
        self.assertEqual((document["identical"], document["steps"], document["weights_compared"]), (True, 40, True))
        self.assertGreaterEqual(document["values"], 40 * 10)

    def test_reproduce_tells_what_is_not_as_it_was(self):
        store = self.folder / "of-another-version.db"
        with contextlib.closing(sqlite3.connect(self.store)) as source, contextlib.closing(sqlite3.connect(store)) as copy:
            source.backup(copy)
            copy.execute("UPDATE metrics SET value = value * (1 + 3e-16) WHERE step = 7 AND metric = (SELECT metric FROM metric_names WHERE name = 'train_loss')")
            copy.commit()
            for program, why in ((None, "why: the store was changed"), ("0.0.1 (commit none)", "why: the run was trained by version 0.0.1 (commit none), not "),
                                 ("", "why: the run was trained by an earlier version, not ")):
                if program is not None:
                    copy.execute("UPDATE events SET body = json_set(body, '$.program', ?) WHERE kind = 'start'", (program,))
                    copy.commit()
                result = self.comera("reproduce", "X", "--store", store)
                self.assertEqual(result.code, 1, result)
                self.assertIn("different: step 7: train_loss", result.out)
                self.assertIn(why, result.out)

    def test_doctor(self):
        document = self.ok_json("doctor")
        self.assertTrue(document["log"].endswith("/comera/studio.log"), document["log"])
        self.check(document, {"version": str, "cuda.built": bool, "cuda.toolkit": str, "cuda.devices": list, "mpi.here": bool, "mpi.library": str, "mpi.reason": str, "nccl.here": bool, "nccl.version": str, "nccl.reason": str, "onednn.here": bool, "onednn.library": str, "onednn.reason": str, "parquet.here": bool, "parquet.library": str, "parquet.reason": str, "blas": str, "threads": int, "store": str, "presets": list})
        self.assertEqual(document["cuda"]["toolkit"].startswith("nvcc "), document["cuda"]["built"])
        self.assertLessEqual({"demo", "encoder6-mnli", "encoder2-nli", "mlp-fashion"}, set(document["presets"]))
        self.assertEqual(document["store"], str(self.store))

    def test_bench(self):
        document = self.ok_json("bench", "step", "demo", "--steps", 3, "--warmup", 1)
        self.check(document, {"step_ms.median": NUMBER, "gflop": NUMBER, "memory.planned_bytes": NUMBER, "ops": list})
        self.check(self.ok_json("bench", "layers", "demo", "--steps", 2), {"step_ms.median": NUMBER, "ops": list})
        self.check(self.ok_json("bench", "gemm", "demo"), {"matmul": str, "gemm": list})

    def test_data(self):
        document = self.ok_json("data", "list")
        names = {row["name"]: row for row in document["sets"]}
        self.assertLessEqual({"fashion-mnist", "sst2-vader", "wordnet-nli"}, set(names))
        for row in names.values():
            self.assertIsInstance(row["here"], bool)
            self.assertIsInstance(row["bytes"], int)
        self.check(self.ok_json("data", "check", "fashion-mnist-demo"), {"rows": int, "classes": list, "fingerprint": str})

    def test_config(self):
        document = self.ok_json("config", "show", "demo", "--set", "train.batch=7", "--origin")
        self.check(document, {"config.train.batch": int, "config.train.lr_core": NUMBER, "config.model.kind": str, "config.method.comera.train_ranks": bool})
        self.assertEqual(document["config"]["train"]["batch"], 7)
        self.assertEqual(document["origin"]["train.batch"], "--set")
        self.assertEqual(document["origin"]["train.precision"], "built-in")
        stash = self.ok_json("config", "explain", "method.stash")
        self.check(stash, {"setting": str, "title": str, "unit": str, "type": str, "built_in": str, "live": bool, "meaning": str})
        self.assertIn("int8", [choice["id"] for choice in stash["choices"]])
        rank = self.ok_json("config", "explain", "model.tt.attention.rank")
        self.assertEqual([when["setting"] for when in rank["used_when"]], ["method.weights", "model.kind"])
        self.assertIn("when method.stash is int8", self.ok("config", "explain", "method.mesa.groups").out)
        self.assertTrue(self.ok_json("config", "validate", "demo")["valid"])
        # What `init` writes is the whole config and may be trained.
        path = self.folder / "full.json"
        self.assertEqual(self.ok_json("config", "init", "demo", "-o", path)["file"], str(path))
        self.fails(2, "config", "init", "mlp-fashion", "-o", path, match="already exists")
        self.assertEqual(json.loads(path.read_text()), self.ok_json("config", "show", "demo")["config"])
        self.assertEqual(self.ok("config", "init", "demo", "-o", "-").out, path.read_text())
        self.ok("config", "validate", path)

    def test_a_short_run_is_told_until_it_goes_on(self):
        store = self.folder / "short.db"
        self.ok("train", "demo", "--steps", 4, "--name", "brief", "--quiet", "--store", store, *QUICK)
        tags = lambda: [run["tags"] for run in self.ok_json("runs", "list", "--store", store)["runs"]]
        self.assertEqual(tags(), [["short"]])
        self.assertEqual(self.query("SELECT tags FROM runs", store), [("[]",)], "it is computed, not stored")
        self.ok("resume", "brief", "--extend", 8, "--quiet", "--store", store)
        self.assertEqual(tags(), [[]])

    def test_runs_and_what_is_in_them(self):
        rows = self.ok_json("runs", "list")["runs"]
        for row in rows:
            self.check({"schema_version": 1, **row}, {"run": str, "name": str, "status": str, "step": int, "total_steps": int, "val_accuracy": NUMBER, "entries": NUMBER, "tags": list})
        self.check(self.ok_json("runs", "show", "X"), {"config": dict, "events": list, "checkpoints": list, "memory": dict, "memory.activation": int})
        self.assertIn("train_loss", self.ok_json("get", "X")["metrics"])
        document = self.ok_json("get", "X", "--metric", "train_loss")
        self.assertEqual(document["steps"], list(range(1, 41)))
        self.assertEqual(len(document["values"]), 40)
        self.assertEqual(self.ok_json("get", "X", "--metric", "train_loss", "--step", 7)["steps"], [7])
        self.assertEqual(self.ok_json("get", "X", "--metric", "train_loss", "--around", 7, "--window", 2)["steps"], [5, 6, 7, 8, 9])
        self.assertTrue(all(all(isinstance(rank, int) for rank in ranks) for ranks in self.ok_json("ranks", "X")["ranks"].values()))
        document = self.ok_json("query", "SELECT name, seed FROM runs WHERE name = 'X'")
        self.assertEqual((document["columns"], document["rows"]), (["name", "seed"], [{"name": "X", "seed": 5}]))
        document = self.ok_json("runs", "diff", "X", "X")
        self.assertEqual(document["differences"], [])

    def test_changes_to_runs(self):
        self.ok("train", "demo", "--steps", 3, "--name", "Y", "--quiet", *QUICK)
        run = self.run_row("Y")["run"]
        for args, done in ((["rename", "Y", "Z"], "renamed"), (["tag", "Z", "good"], "tagged"), (["tag", "Z", "good", "--remove"], "untagged"), (["archive", "Z"], "archived"),
                           (["restore", "Z"], "restored")):
            document = self.ok_json("runs", *args)
            self.assertEqual((document["run"], document["done"]), (run, done))
        self.assertEqual(self.ok_json("runs", "diff", "X", "Z")["differences"][0]["path"], "name")
        path = self.run_row("Z")["checkpoints"][0]["path"]
        self.assertTrue(os.path.exists(path))
        self.ok_json("runs", "purge", "Z", "--confirm", "Z")
        self.assertFalse(os.path.exists(path))
        self.assertNotIn(run, self.ok("runs", "list", "--all", "--plain").out)

    def test_events_stream(self):
        path = self.folder / "events.jsonl"
        self.ok("train", "demo", "--steps", 12, "--events", path, "--quiet", "--name", "events", *QUICK)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        of = lambda kind: [line for line in lines if line["event"] == kind]
        self.assertEqual([line["step"] for line in of("step")], list(range(1, 13)))
        self.assertEqual({line["metric"] for line in of("metric")}, {"val_loss", "val_accuracy", "val_examples", "eval_ms", "process_bytes", "device_used_bytes", "device_total_bytes", "data_ms", "forward_ms", "backward_ms", "update_ms"})
        self.assertEqual([line["step"] for line in of("checkpoint")], [12])
        self.assertEqual({(line["layer"], line["bond"]) for line in of("rank_change") if line["step"] == 0},
                         {tuple(row) for row in self.query("SELECT layer, bond FROM ranks JOIN runs USING(run) WHERE name = 'events' AND ranks.step = 0")})
        self.assertEqual([line["step"] for line in lines], sorted(line["step"] for line in lines))
        self.assertEqual(lines[-1], {"event": "done", "status": "finished", "step": 12})
        stored = self.ok_json("get", "events", "--metric", "train_loss")["values"]
        self.assertEqual([line["values"]["train_loss"] for line in of("step")], stored)

    def test_changes_at_the_start_and_at_a_step(self):
        more = ["--quiet", *QUICK, "--set", "train.lr_rank=5e-2", "--set", "train.schedule=constant"]
        self.ok("train", "demo", "--steps", 30, "--name", "told", *more, "--set", "rank.cap.fc0.2=7", "--set", "rank.weight.fc1=0",
                "--edit", "12:stage=late", "--edit", "20:train.lr_core=1e-4", "--edit", "25:rank.cap.fc0.2=null")
        events = [(event["kind"], event["step"], event["body"].get("path")) for event in self.ok_json("runs", "show", "told")["events"]
                  if event["kind"] in ("edit", "stage")]
        self.assertEqual(sorted(events, key=lambda event: (event[1], str(event[2]))),
                         [("edit", 1, "rank.cap.fc0.2"), ("edit", 1, "rank.weight.fc1"), ("stage", 12, None), ("edit", 20, "train.lr_core"), ("edit", 25, "rank.cap.fc0.2")])
        at = self.ok_json("ranks", "told", "--step", 5)
        self.assertEqual((at["ranks"]["fc0"][1], at["step"]), (7, 5))
        self.assertEqual([self.ok_json("ranks", "told", *at)["step"] for at in ([], ["--step", 0], ["--step", 1])], [30, 0, 1])
        self.assertEqual([self.ok_json("get", "told", "--metric", "lr_core", "--step", step)["steps"] for step in (0, 1, 30, 31)], [[], [1], [30], []])
        self.assertEqual(self.ok_json("get", "told", "--metric", "lr_core")["values"][19], 1e-4)
        targets = self.ok_json("get", "told", "--metric", "target_entries")["values"]
        self.assertEqual([target > 0 for target in targets], [step >= 12 for step in range(1, 31)])
        self.assertTrue(self.ok_json("reproduce", "told")["identical"])
        self.ok("fork", "told", "--at-step", 15, "--steps", 18, "--name", "branch", "--quiet", "--set", "rank.cap.fc0.2=4", "--set", "train.batch=32")
        self.assertEqual(self.ok_json("ranks", "branch")["ranks"]["fc0"][1], 4)
        self.assertTrue(self.ok_json("reproduce", "branch")["identical"])

    def test_ranks_of_projections_and_factors(self):
        sets = ["--quiet", *QUICK, "--set", "train.warmup=0", "--set", "train.schedule=constant"]
        self.ok("train", "demo", "--method", "galore", "--steps", 12, "--name", "projected", *sets, "--set", "method.galore.rank=8", "--set", "method.galore.gap=4",
                "--edit", "6:method.galore.rank=3")
        self.ok("train", "demo", "--method", "lora", "--steps", 3, "--name", "factors", *sets, "--set", "method.lora.rank=2")
        self.ok("train", "demo", "--method", "adamw", "--steps", 3, "--name", "none", *sets)
        ranks = lambda *of: self.ok_json("ranks", *of)["ranks"]
        self.assertEqual(set(map(tuple, ranks("projected").values())), {(3,)})
        self.assertEqual(set(map(tuple, ranks("projected", "--step", 5).values())), {(8,)})
        self.assertEqual(set(map(tuple, ranks("factors").values())), {(2,)})
        self.assertEqual(ranks("none"), {})
        self.assertRegex(self.ok("ranks", "projected").out.splitlines()[0], r"^matrix +rank")

    def test_stdin_and_stdout(self):
        config = json.dumps({"model": {"kind": "mlp", "classes": 10, "mlp": {"inputs": 784, "hidden": [32]}}, "data": {"set": "fashion-mnist-demo"}})
        for args in (["plan", "-"], ["config", "show", "-"], ["config", "validate", "-"]):
            self.ok_json(*args, given=config)
        trained = self.ok_json("train", "-", "--steps", 5, "--quiet", *QUICK, given=config)
        self.assertEqual((trained["name"], trained["step"]), ("stdin", 5))
        self.assertIn("hidden", self.ok("config", "init", "mlp-fashion", "-o", "-").out)
        config_of_5 = config[:-1] + ', "train": {"seed": 5}}'
        for seed, more in ((5, []), (0, ["--seed", 0]), (7, ["--seed", 7])):
            run = self.ok_json("train", "-", "--steps", 1, "--quiet", *more, *QUICK, given=config_of_5)["run"]
            self.assertEqual(self.run_row(run)["config"]["train"]["seed"], seed)
        # Data, both ways: a text model reads the rows that are piped in, and its answers go on.
        path = tiny_encoder(self.folder, name="piped")
        run = self.ok_json("train", path, "--steps", 3, "--quiet")["run"]
        rows = (self.folder / "piped-data" / "dev.tsv").read_text()
        self.assertEqual(self.ok_json("eval", run, "--data", "-", given=rows)["loss"], self.ok_json("eval", run)["loss"])
        self.assertEqual(self.ok("predict", run, "--data", "-", given=rows).out, self.ok("predict", run, "-o", "-").out)
        table = self.ok("export", run, "--to", "csv", "-o", "-").out
        back = self.ok_json("import", "-", "--name", "through a pipe", given=table)
        self.assertEqual(back["points"], table.count("\n") - 1)
        file = self.folder / "piped.safetensors"
        self.ok("export", run, "--to", "safetensors", "-o", file)
        process = self.command("export", run, "--to", "safetensors", "-o", "-", text=False)
        self.assertEqual(process.communicate()[0], file.read_bytes())
        self.assertEqual(process.returncode, 0)
        self.assertEqual([place.name for place in Path(tempfile.gettempdir()).glob(f"comera-*-{process.pid}")], [])

    def test_the_events_on_stdout_are_all_that_is_there(self):
        out = self.ok("train", "demo", "--steps", 4, "--events", "-", "--quiet", *QUICK).out
        self.assertEqual(json.loads(out.splitlines()[-1]), {"event": "done", "status": "finished", "step": 4})
        self.assertEqual([json.loads(line)["step"] for line in out.splitlines() if json.loads(line)["event"] == "step"], [1, 2, 3, 4])

    def test_completion_as_json(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertEqual(self.ok_json("completion", shell)["script"], self.ok("completion", shell).out)


class Text(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert cls.comera("train", "demo", "--steps", 10, "--name", "X", "--quiet", *QUICK).code == 0

    def test_plain_is_one_record_a_line(self):
        human = self.ok("runs", "list").out.splitlines()
        plain = self.ok("runs", "list", "--plain").out.splitlines()
        self.assertEqual(len(human), len(plain) + 1)
        self.assertEqual(plain[-1].split("\t")[1:3], ["X", "finished"])
        self.assertEqual({line.count("\t") for line in plain}, {10})
        self.assertRegex(human[1], r"^r-\w{6}  \S", "two spaces between columns")
        store, db = self.folder / "aged" / "runs.db", sqlite3.connect(self.store)
        store.parent.mkdir()
        with contextlib.closing(db), contextlib.closing(sqlite3.connect(store)) as aged:
            db.backup(aged)
            for seconds, text in ((30, "now"), (120, "2 min ago"), (80 * 60, "80 min ago"), (7200, "2 h ago"), (30 * 3600, "30 h ago"), (3 * 86400, "3 d ago")):
                aged.execute("UPDATE runs SET created = ?", (time.time() - seconds,))
                aged.commit()
                self.assertEqual(self.ok("runs", "list", "--plain", "--store", store).out.splitlines()[0].split("\t")[-1], text)
            for value, text in (("NULL", "nan"), ("9e999", "inf"), ("-9e999", "-inf")):
                aged.execute(f"UPDATE metrics SET value = {value}")
                aged.commit()
                self.assertEqual(self.ok_json("get", "X", "--metric", "train_loss", "--step", 3, "--store", store)["values"], [text])
        steps = [line.split("\t") for line in self.ok("get", "X", "--metric", "train_loss", "--plain").out.splitlines()]
        self.assertEqual([int(step) for step, _ in steps], list(range(1, 11)))
        shown = self.ok("config", "show", "demo", "--plain").out.splitlines()
        self.assertTrue(all(line.count("\t") == 4 for line in shown))
        self.assertEqual(self.ok("query", "SELECT name, step FROM runs WHERE name = 'X'", "--plain").out, "X\t10\n")

    def test_help(self):
        top = self.ok("--help").out
        self.assertEqual(self.ok("help").out, top)
        self.assertLess(top.index("comera train demo"), top.index("--json"))  # examples first
        for verb in VERBS:
            self.assertRegex(top, rf"(?m)^  {verb} ")
            with self.subTest(verb):
                text = self.ok(verb, "--help").out
                self.assertEqual(self.ok("help", verb).out, text)
                self.assertGreater(len(text.splitlines()), 2)
                self.assertRegex(text, rf"(?s)^.+\nExamples:\n  comera {verb}\b.*\nUsage: ")
                for inner in re.findall(r"(?m)^  (\w+) ", text.split("\nSubcommands:\n")[1]) if "\nSubcommands:\n" in text else []:
                    self.assertRegex(self.ok(verb, inner, "--help").out, rf"(?s)^.+\nExamples:\n  comera {verb} {inner}\b.*\nUsage: ")
        version = self.ok("--version").out
        found = re.match(r"comera (\d+\.\d+\.\d+) \(commit ([0-9a-f]{7,}|unknown), CUDA (not )?built in, .+\)\n$", version)
        self.assertTrue(found, version)
        doctor = self.ok_json("doctor")
        self.assertEqual(found.groups()[:2], (doctor["version"], doctor["commit"]))
        self.assertEqual(found[3] is None, doctor["cuda"]["built"])
        short = self.comera()
        self.assertEqual(short.code, 2)
        self.assertEqual(short.err.count("\n  comera "), 2)  # two examples
        self.assertEqual(self.ok("help", "runs", "list", "surplus").out, self.ok("runs", "list", "--help").out)

    def test_completion_scripts(self):
        script = self.ok("completion", "bash").out
        path = self.folder / "completion.bash"
        path.write_text(script)
        subprocess.run(["bash", "-n", path], check=True)
        for verb in VERBS:
            self.assertIn(f" {verb}", script)
        # It completes: a verb, a verb's option.
        for words, wanted in (("comera tra", "train"), ("comera train --max", "--max-time"), ("comera runs pu", "purge"), ("comera runs sal", "salvage")):
            found = subprocess.run(["bash", "-c", f'source {path}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _comera; printf "%s\\n" "${{COMPREPLY[@]}}"'],
                                   capture_output=True, text=True, check=True).stdout.split()
            self.assertIn(wanted, found)
        subprocess.run(["bash", "-n"], input=self.ok("completion", "zsh").out, text=True, check=True)
        for line in self.ok("completion", "fish").out.splitlines():
            self.assertTrue(line.startswith("complete -c comera "), line)
            self.assertEqual(line.count("'") % 2, 0, line)  # a quote in a description would end it

    def test_no_escape_codes_without_a_terminal(self):
        for more in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
            result = self.ok("train", "demo", "--steps", 10, *QUICK, env=more)
            self.assertNotIn("\x1b", result.out + result.err)
            self.assertNotIn("\r", result.out + result.err)
            self.assertTrue(result.err.strip(), "a line of progress is expected")

    def in_a_terminal(self, *args, **env):
        if not shutil.which("script"):
            self.skipTest("no script(1) here")
        command = shlex.join([str(BIN), *map(str, args)])
        return subprocess.run(["script", "-qec", command, "/dev/null"], env=environment(self.folder, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout.decode()

    def test_a_terminal_gets_a_live_view(self):
        args = ["train", "demo", "--steps", 30, *QUICK]
        color = re.compile(r"\x1b\[[0-9;]*m")
        seen = self.in_a_terminal(*args)
        self.assertRegex(seen, color)
        self.assertIn("\x1b[2K", seen)
        self.assertIn("validation", seen)
        for plain in (self.in_a_terminal(*args, NO_COLOR="1"), self.in_a_terminal(*args, "--no-color")):
            self.assertNotRegex(plain, color)
            self.assertIn("\x1b[2K", plain)
        self.assertRegex(self.in_a_terminal(*args, NO_COLOR=""), color)  # empty means not set
        self.assertNotIn("\x1b", self.in_a_terminal(*args, TERM="dumb"))
        self.assertNotIn("\x1b[2K", self.in_a_terminal(*args, "--quiet"))

    def test_colours_without_a_terminal_are_asked_for(self):
        self.ok("train", "demo", "--steps", 10, *QUICK)
        for args, where in ((("runs", "list"), "out"), (("runs", "show", "no-such-run"), "err")):
            said = lambda **env: getattr(self.comera(*args, env=env), where)
            self.assertRegex(said(FORCE_COLOR="1"), r"\x1b\[[0-9;]*m")
            for none in ({}, {"FORCE_COLOR": ""}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}):
                self.assertNotIn("\x1b", said(**none), none)
        self.assertNotIn("\x1b", self.ok("runs", "list", "--no-color", env={"FORCE_COLOR": "1"}).out)
        self.assertNotIn("\x1b", self.ok("runs", "list", "--plain", env={"FORCE_COLOR": "1"}).out)
        json.loads(self.ok("runs", "list", "--json", env={"FORCE_COLOR": "1"}).out)

    def test_nothing_is_written_to_the_working_folder(self):
        place = self.folder / "elsewhere"
        place.mkdir()
        subprocess.run([BIN, "train", "demo", "--steps", "5", "--quiet", *QUICK], env=environment(self.folder), cwd=place, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(list(place.iterdir()), [])

    def test_the_store_is_in_the_users_data_folder(self):
        home = self.folder / "home"
        env = environment(home)
        env.pop("COMERA_STORE")
        subprocess.run([BIN, "train", "demo", "--steps", "5", "--quiet", *QUICK], env=env, check=True, stdout=subprocess.DEVNULL)
        self.assertTrue((home / "data" / "comera" / "runs.db").exists())
        self.assertEqual(len(list((home / "data" / "comera" / "checkpoints").iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
