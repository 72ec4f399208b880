"""A first walk through the window: what somebody does who has never seen it, each stop at most two clicks from the one
before. Prints the walk as a table, and keeps a picture of every stop in build/screenshots (walk-*.png)."""
import sys
import time

from driver import WindowTest, main, until

TARGET = "method.comera.target"


class Walk(WindowTest):
    def stop(self, name, what, clicks, seen):
        self.assertLessEqual(clicks, 2, name)
        self.studio.picture(f"walk-{len(self.stops) + 1}-{name.replace(' ', '-')}")
        self.stops.append((name, what, clicks, seen))

    def test_demo_target_ranks_replay_fork_and_comparison(self):
        self.stops = []
        studio = self.studio = self.open("--set", "train.threads=1", "--set", "train.max_steps_per_s=0")  # the other core draws
        studio.see("Run the demo")
        self.stop("start", "the program is started", 0, "three cards and the list of runs")

        studio.click("Run the demo")
        clicked = time.monotonic()
        run = self.only_run()
        self.trains_past(run, 0)
        first = time.monotonic() - clicked
        self.assertLess(first, 30, "something moves")
        studio.see("plot:loss:1")
        self.trains_past(run, 400)
        self.stop("demo", "`Run the demo`", 1, f"loss and accuracy move; the first steps are in the store {first:.1f} s after the click")

        across = lambda target: 0.045 + 0.91 * (target - 0.05) / 0.95  # of the slider, whose handle stays inside
        studio.drag(TARGET, across(0.3), across(0.15))
        edits = lambda: self.events(run, "edit")  # several, while it is dragged
        edit = until(lambda: edits() and float(edits()[-1]["body"]["value"]) < 0.2 and edits()[-1], lambda: f"a target near 0.15 among {edits()}")
        target = float(edit["body"]["value"])
        self.stop("target", "the slider `Size target` is dragged", 1, f"from 0.30 to {target:.2f}, from step {edit['step']:,} on")

        sizes = lambda: self.metric(run, "entries")
        falls = until(lambda: self.events(run, "truncation"), "ranks that are cut")[0]["step"]
        until(lambda: self.run_row(run)["status"] == "finished", "the end of the demo")
        size = sizes()
        start, end = size[min(size)], size[max(size)]
        self.assertLess(end, 0.5 * start)
        self.stop("ranks fall", "nothing", 0, f"rank map and sizes fall, cut for the first time at step {falls:,}: {start:,.0f} -> {end:,.0f} entries at the end")

        sign = r"says:REPLAY  step ([\d,]+) of .*"
        studio.drag("lanes", 0.95, 0.3)
        at = studio.steady(sign).split()[2]
        self.stop("replay", "the timeline is dragged", 1, f"every panel shows step {at}, in a frame that says REPLAY")

        studio.click("fork")
        forked = until(lambda: [row[0] for row in self.query("SELECT id FROM runs") if row[0] != run], "a fork")[0]
        self.trains_past(forked, int(at.replace(",", "")) + 200)
        studio.see("says:Running")
        self.stop("fork", "`Fork from step ...`", 1, "a new run trains from there, with the target of then")

        studio.key("ctrl+p")
        studio.type("compare with parent")
        studio.key("Return")
        for name in (run, forked):
            studio.see("compared:" + name)
        studio.see("plot:train_loss:2")
        self.stop("compare", "Ctrl+P, `compare with parent`, Enter", 2, "both runs in one picture, the parent as the baseline; the fork still trains")

        print("\n| stop | what is done | clicks or keys from the stop before | what is seen |\n|---|---|---|---|", file=sys.stderr)
        for stop in self.stops:
            print("| " + " | ".join(map(str, stop)) + " |", file=sys.stderr)


if __name__ == "__main__":
    main()
