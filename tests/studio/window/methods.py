"""Methods in the real window: chosen in the form of a new run, steered while they train, replayed on the timeline and reproduced. One for each
kind of control; with COMERA_METHODS=all in the environment every method with a name of its own, with COMERA_METHODS=compositions also the
compositions that the plan of all methods lists. Prints a table, and keeps a picture of every run in build/screenshots (method-*.png)."""
import json
import os
import sys

from driver import WindowTest, main, until

SMALL = ["train.threads=1", "train.steps=1000000", "train.batch=16", "train.eval_every=0", "train.max_steps_per_s=200", "train.lr=1e-4",
         "model.mlp.hidden=[96,64]", "model.tt.ffn_in.in_modes=[]", "model.tt.ffn_in.out_modes=[]",
         "method.comera.late_after=1000000"]  # the controls stay where they are
RATE = "train.lr"
RANKS = r"method\.[a-z_0-9-]+\.(rank|target):value"  # of projections, adapters or tensor trains
ONE_OF_A_KIND = ["comera", "galore", "lora", "adam8bit"]  # a size target, the rank of projections, that of adapters, no rank


class Methods(WindowTest):
    SCREEN = "1600x2200"  # all methods and all controls in sight

    def edited(self, run, path):
        return [event for event in self.events(run, "edit") if event["body"]["path"] == path]

    def steer(self, studio, run, path, value):
        studio.click(path + ":value")
        studio.type(value)
        studio.key("Return")
        edit = until(lambda: self.edited(run, path), f"an edit of {path} in {run}")[-1]
        self.assertEqual(float(edit["body"]["value"]), float(value), path)
        studio.see("sign:" + path)
        return edit["step"]

    def walk(self, studio, method, runs):
        studio.key("ctrl+n")
        studio.click("method:" + method)
        studio.settled(lambda: studio.items().get("start-run"), "the form")
        studio.click("start-run")
        run = until(lambda: [row[0] for row in self.query("SELECT id FROM runs") if row[0] not in runs], f"a run of {method}")[0]
        self.trains_past(run, 50)
        rank = studio.seen(RANKS)
        edits = {RATE: "0.00005"}
        if rank:
            edits[rank.removesuffix(":value")] = "0.5" if rank.endswith("target:value") else "3"
        said = [f"{path} = {value} from step {self.steer(studio, run, path, value)}" for path, value in edits.items()]
        self.trains_past(run, self.last_step(run) + 250)  # past a refresh, where a new rank of projections comes into force
        studio.key("shift+F5")
        until(lambda: self.run_row(run)["status"] == "stopped", f"the end of {run}")
        studio.drag("lanes", 0.95, 0.4)
        sign = studio.steady(r"says:REPLAY  step ([\d,]+) of .*")
        studio.key("ctrl+p")
        studio.type("reproduce the whole")
        studio.key("Return")
        told = studio.see(r"says:.*reproduced: .*")
        self.assertIn("identical", told)
        studio.picture(f"method-{method}")
        studio.click("Dismiss")
        return run, said, sign.removeprefix("says:"), told.removeprefix("says:")

    def test_each_is_chosen_steered_replayed_and_reproduced(self):
        settings = [word for setting in SMALL for word in ("--set", setting)]
        planned = json.loads(self.comera("plan", "demo", "--all-methods", "--json", *settings))["methods"]
        wanted = os.environ.get("COMERA_METHODS", "")
        methods = [row["method"] for row in planned
                   if (wanted == "compositions" or "+" not in row["method"]) and (wanted or row["method"] in ONE_OF_A_KIND)]
        self.assertGreaterEqual(len(methods), len(ONE_OF_A_KIND))
        studio = self.open("--size", self.SCREEN, *settings)
        studio.see("Run the demo")
        studio.key("ctrl+n")
        studio.click("choice:Memory of all methods")
        runs, rows = [], []
        for method in methods:
            run, *row = self.walk(studio, method, runs)
            runs.append(run)
            rows.append((method, *row))
        print("\n| method | steered | replayed | reproduced |\n|---|---|---|---|", file=sys.stderr)
        for method, said, sign, told in rows:
            print(f"| {method} | {'; '.join(said)} | {sign} | {told} |", file=sys.stderr)


if __name__ == "__main__":
    main()
