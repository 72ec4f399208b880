"""Where settings come from: built-in < system < user < project < the named config < environment < --set."""
import json
import unittest

from support import CliTest


class Layers(CliTest):
    def setUp(self):
        self.project = self.folder / "project"
        self.system, self.user = self.folder / "etc" / "comera", self.folder / "config" / "comera"
        for folder in (self.project, self.system, self.user):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = {"XDG_CONFIG_DIRS": str(self.folder / "etc")}
        self.named = self.write(self.folder / "named.json", {"data": {"set": "fashion-mnist-demo"}})

    def tearDown(self):
        for path in (self.project / "comera.json", self.system / "config.json", self.user / "config.json"):
            path.unlink(missing_ok=True)

    def write(self, path, config):
        path.write_text(json.dumps(config))
        return path

    def shown(self, *args, **env):
        document = self.ok_json("config", "show", self.named, "--origin", *args, env={**self.env, **env}, cwd=self.project)
        return document["config"], document["origin"]

    def test_each_layer_beats_the_one_before(self):
        path = "train.warmup"
        steps = [
            ("built-in", lambda: None),
            ("system", lambda: self.write(self.system / "config.json", {"train": {"warmup": 1, "threads": 1}})),
            ("user", lambda: self.write(self.user / "config.json", {"train": {"warmup": 2}})),
            ("project", lambda: self.write(self.project / "comera.json", {"train": {"warmup": 3}})),
            ("named", lambda: self.write(self.named, {"data": {"set": "fashion-mnist-demo"}, "train": {"warmup": 4}})),
        ]
        sources = {"built-in": "built-in", "system": str(self.system / "config.json"), "user": str(self.user / "config.json"), "project": "comera.json", "named": str(self.named)}
        for value, (name, act) in enumerate(steps):
            act()
            config, origin = self.shown()
            self.assertEqual((config["train"]["warmup"], origin[path]), (value, sources[name]))
        self.assertEqual(origin["train.threads"], sources["system"], "what later layers leave alone stays")
        config, origin = self.shown(COMERA_TRAIN_WARMUP="5", COMERA_METHOD_COMERA_TARGET="")
        self.assertEqual((config["train"]["warmup"], origin[path]), (5, "environment"))
        self.assertEqual(origin["method.comera.target"], "built-in", "an empty variable is none")
        config, origin = self.shown("--set", "train.warmup=6", COMERA_TRAIN_WARMUP="5")
        self.assertEqual((config["train"]["warmup"], origin[path]), (6, "--set"))

    def test_a_run_takes_them_and_stores_what_it_took(self):
        self.write(self.user / "config.json", {"train": {"threads": 1}})
        self.ok("train", "demo", "--steps", 3, "--name", "layers", "--quiet", env={**self.env, "COMERA_TRAIN_BATCH": "16"}, cwd=self.project)
        train = self.run_row("layers")["config"]["train"]
        self.assertEqual((train["threads"], train["batch"], train["steps"]), (1, 16, 3))

    def test_a_folder_is_no_config(self):
        for name in ("demo", "results"):
            (self.project / name).mkdir(exist_ok=True)
        self.assertEqual(self.ok_json("config", "show", "demo", cwd=self.project)["config"]["name"], "demo")
        self.fails(3, "config", "show", "results", match=["results is a folder, not a config file", "hf:results"], cwd=self.project)

    def test_mistakes(self):
        self.fails(3, "config", "show", "demo", match=["COMERA_TRAIN_WARMUPS names no setting", "did you mean COMERA_TRAIN_WARMUP"], env={"COMERA_TRAIN_WARMUPS": "5"})
        self.fails(3, "config", "show", "demo", match="train.warmup", env={"COMERA_TRAIN_WARMUP": "many"})
        self.write(self.user / "config.json", {"train": {"warmups": 2}})
        self.fails(3, "train", "demo", match=["config.json", "warmups"])
        (self.user / "config.json").write_text("{")
        self.fails(3, "train", "demo", match="config.json:1:")


if __name__ == "__main__":
    unittest.main()
