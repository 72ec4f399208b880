#!/usr/bin/env python3
"""A walk with data that the program has not seen: files and folders are dropped onto the window (XDND, by python-xlib), and trained. Prints a
table; a picture of every stop is in build/screenshots (own-data-*.png).

    pip install python-xlib
    python3 experiments/demo/own_data.py CSV JSONL FOLDER ..."""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "studio" / "window"))
from driver import WindowTest, until  # noqa: E402
from Xlib import X, Xatom, display as xdisplay  # noqa: E402
from Xlib.protocol import event as xevent  # noqa: E402

FILES = [pathlib.Path(word).resolve() for word in sys.argv[1:]]


def drop(name, window, path, at=(600, 400)):
    """What a file manager does."""
    display = xdisplay.Display(name)
    atom = display.intern_atom
    target = display.create_resource_object("window", window)
    source = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    source.set_selection_owner(atom("XdndSelection"), X.CurrentTime)
    uris = atom("text/uri-list")

    def tell(kind, *data):
        values = [source.id, *data, 0, 0, 0, 0][:5]
        target.send_event(xevent.ClientMessage(window=target, client_type=atom(kind), data=(32, values)), event_mask=0)
        display.flush()

    tell("XdndEnter", 5 << 24, uris)
    tell("XdndPosition", 0, (at[0] << 16) | at[1], X.CurrentTime, atom("XdndActionCopy"))
    end, dropped = time.monotonic() + 20, False
    while time.monotonic() < end:
        while display.pending_events():
            event = display.next_event()
            if event.type == X.ClientMessage and event.client_type == atom("XdndStatus") and not dropped:
                dropped = True
                tell("XdndDrop", 0, X.CurrentTime)
            elif event.type == X.ClientMessage and event.client_type == atom("XdndFinished"):
                display.close()
                return
            elif event.type == X.SelectionRequest:
                event.requestor.change_property(event.property, uris, 8, f"file://{path}\r\n".encode())
                event.requestor.send_event(xevent.SelectionNotify(time=event.time, requestor=event.requestor, selection=event.selection,
                                                                  target=event.target, property=event.property))
                display.flush()
        time.sleep(0.02)
    raise AssertionError("the drop was not taken")


class OwnData(WindowTest):
    def test_from_a_drop_to_a_trained_model(self):
        studio = self.open("--set", "train.threads=1", "--set", "train.epochs=3", "--set", "train.steps=200", "--set", "train.eval_every=100")
        studio.see("Run the demo")
        for number, path in enumerate(FILES):
            began = time.monotonic()
            drop(self.display.name, studio.window, path)
            studio.see("start-run")
            studio.see("export")
            studio.settled(lambda: len(studio.items()), "the form")
            filled = time.monotonic() - began
            studio.picture(f"own-data-{number}-form")
            before = len(self.query("SELECT id FROM runs"))
            studio.click("start-run")
            run = until(lambda: len(rows := self.query("SELECT id FROM runs ORDER BY run")) > before and rows[-1][0], "a run")
            until(lambda: self.run_row(run)["status"] in ("finished", "failed", "diverged"), "the end of the run", 600)
            studio.picture(f"own-data-{number}-trained")
            row = self.run_row(run)
            data, model = row["config"]["data"], row["config"]["model"]
            found = f"text {data['text_column'] or '(files)'}, length {model['length']}"
            if model["task"] == "language":
                scores = "perplexity " + ", ".join(f"{value:.1f}" for value in self.metric(run, "val_perplexity").values())
            else:
                found += f", label {data['label_column']}, {model['classes']} classes"
                scores = "accuracy " + ", ".join(f"{100 * value:.1f}" for value in self.metric(run, "val_accuracy").values()) + " %"
            print(f"| {path.name} | {filled:.1f} | {model['task']}, {found} | {row['status']}, {row['step']} steps | {scores} |", flush=True)


if __name__ == "__main__":
    print("| dropped | drop to form, s | found | run | validation |\n|---|---|---|---|---|", flush=True)
    unittest.main(argv=[sys.argv[0]], verbosity=0)
