#!/usr/bin/env python3
"""Who may include whom. Greps the includes of core, gpu and app and prints each line that breaks a rule.

    include_rules.py [--root DIR]     exit 0: no violation, 1: some
    include_rules.py --self-test      plants violations and checks that each is found"""
import pathlib
import re
import tempfile

import check

# folder -> what it may include besides itself: folders, or single headers. tests/ and experiments/ are free.
CORE_BELOW_TRAIN = "base comm config tensor ops records layers models tasks optim methods data store"
ALLOWED = {
    "core/base": "",
    "core/comm": "base",
    "core/config": "base core/tensor/dtype.h",
    "core/tensor": "base",
    "core/ops": "base tensor",
    "core/cpu": "base tensor ops",
    "gpu": "base tensor ops",
    "core/layers": "base config tensor ops",
    "core/models": "base config tensor ops layers",
    "core/tasks": "base config tensor ops layers",
    "core/optim": "base config tensor ops layers",
    "core/records": "base",
    "core/methods": "base config tensor ops records layers optim models",
    "core/data": "base config tensor",
    "core/store": "base config tensor",
    "core/train": CORE_BELOW_TRAIN,
    "core/session": "comm train store records base config tensor data core/ops/device.h core/methods/model_size.h",
    "app": "session comm train store records data base config tensor core/ops/device.h core/ops/device_link.h",
}
# What the files of a folder may not see through any chain of includes either: the window is built without knowing a layer.
HIDDEN = {"app": "core/layers core/models core/optim core/methods core/cpu gpu".split()}
# headers of libraries -> the one folder that may include them
LIBRARIES = [
    (re.compile(r"(cuda\w*|cublas\w*|cudnn\w*|curand\w*|cusolver\w*|nvtx\w*|nccl)(\.h|/.*)$"), ["gpu", "tests/gpu/ptx"]),
    (re.compile(r"(imgui|implot)\w*\.h$"), ["app/studio", "tests/studio"]),
    (re.compile(r"sqlite3(ext)?\.h$"), ["core/store"]),
    (re.compile(r"mpi\w*\.h$"), ["core/comm/mpi"]),
    (re.compile(r"(arrow|parquet)/.*"), ["core/data/parquet"]),
    (re.compile(r"(dnnl\w*\.hp*|omp\.h)$"), ["core/cpu/onednn", "experiments/bench"]),
]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:"([^"]+)"|<([^>]+)>|(\S+))', re.MULTILINE)


def folder_of(path):
    """The unit of the rules that a path of ours belongs to: core/ops, gpu, app, tests; None for others."""
    parts = path.split("/")
    if parts[0] == "core" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if parts[0] in ("gpu", "app", "tests", "experiments") else None


def may(folder, target):
    """Whether a file of `folder` may include our header `target`."""
    to = folder_of(target)
    if to == folder or folder in ("tests", "experiments"):
        return True
    words = ALLOWED[folder].split()
    return target in words or (to or "").removeprefix("core/") in words and to.startswith("core/")


def ours(root, file, name):
    """The path from the root of an included header of ours, else None: from the root, or beside the file."""
    if name.split("/")[0] in ("core", "gpu", "app", "tests", "experiments"):
        return name
    beside = (file.parent / name).resolve()
    return beside.relative_to(root).as_posix() if beside.is_file() and beside.is_relative_to(root) else None


def chain_to_hidden(start, hidden, included):
    """The shortest chain of our headers from a file to one of a hidden folder; [] = it reaches none."""
    paths, reached = [[start]], {start}
    for path in paths:
        for target in included.get(path[-1], []):
            if folder_of(target) in hidden and len(path) > 1:
                return path + [target]
            if target not in reached:
                reached.add(target)
                paths.append(path + [target])
    return []


def hidden_reached(included):
    """One violation a last step of such chains, with a file that takes it: mending that step mends all of them."""
    found = {}
    for start in sorted(included):
        chain = chain_to_hidden(start, HIDDEN.get(folder_of(start), []), included)
        if chain:
            found.setdefault((chain[-2], chain[-1]), f"{start} sees {chain[-1]} through {', '.join(chain[1:-1])}")
    return list(found.values())


def violations(root):
    root = root.resolve()
    found, sqlite_files, seen, included = [], set(), 0, {}
    for top in ("core", "gpu", "app", "tests", "experiments"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            seen += 1
            path = file.relative_to(root).as_posix()
            folder = folder_of(path)
            text = file.read_text(encoding="utf-8")
            if folder not in ALLOWED and folder not in ("tests", "experiments"):
                found.append(f"{path}: its folder has no rule in include_rules.py")
                continue
            for match in INCLUDE.finditer(text):
                name = match[1] or match[2]
                where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
                if not name:
                    found.append(f"{where}: include of a macro ({match[3]}) cannot be checked")
                    continue
                target = ours(root, file, name)
                if target:
                    included.setdefault(path, []).append(target)
                if target and not may(folder, target):
                    found.append(f"{where}: {folder} may not include {target}")
                for library, homes in LIBRARIES if not target else []:
                    if library.match(name) and not any(path.startswith(home + "/") for home in homes):
                        found.append(f"{where}: <{name}> only under {' and '.join(homes)}")
                if name == "sqlite3.h":
                    sqlite_files.add(path)
    found += hidden_reached(included)
    if len(sqlite_files) > 1:
        found.append(f"sqlite3.h is included by {len(sqlite_files)} files, allowed is one: {', '.join(sorted(sqlite_files))}")
    if not seen:
        found.append(f"no source under {root}: nothing was checked")
    return found


# file, its text, and what the one violation found must say ("" = allowed)
CASES = [
    ("core/tensor/a.cpp", '#include "core/base/error.h"\n#include <vector>\n#include "core/tensor/a.h"', ""),
    ("core/base/a.h", '#include "core/tensor/tensor.h"', "core/base may not include core/tensor/tensor.h"),
    ("core/config/a.h", '#include "core/base/fields.h"\n#include "core/tensor/dtype.h"', ""),
    ("core/config/b.h", '#include "core/layers/layer.h"', "core/config may not include core/layers/layer.h"),
    ("core/ops/a.h", '  #  include "core/cpu/cpu_ops.h"', "core/ops may not include core/cpu/cpu_ops.h"),
    ("core/cpu/a.cpp", '#include "gpu/check.h"', "core/cpu may not include gpu/check.h"),
    ("core/cpu/b.cpp", '\n\n#include <core/layers/layer.h>', "core/cpu/b.cpp:3: core/cpu may not include core/layers/layer.h"),
    ("core/layers/a.cpp", '#include "core/optim/optimizer.h"', "core/layers may not"),
    ("core/models/a.cpp", '#include "core/methods/tables.h"', "core/models may not"),
    ("core/optim/a.cpp", '#include "core/methods/tables.h"', "core/optim may not"),
    ("core/methods/a.cpp", '#include "core/models/model.h"\n#include "core/optim/optimizer.h"', ""),
    ("core/data/a.cpp", '#include "core/ops/ops.h"', "core/data may not"),
    ("core/store/a.cpp", '#include <sqlite3.h>\n#include "core/data/dataset.h"', "core/store may not include core/data/dataset.h"),
    ("core/train/a.cpp", '#include "core/methods/tables.h"\n#include "core/store/store.h"', ""),
    ("core/train/b.cpp", '#include "core/cpu/cpu_ops.h"', "core/train may not"),
    ("core/train/c.cpp", '#include "../cpu/real.h"', "core/train may not include core/cpu/real.h"),
    ("core/cpu/real.h", "", ""),
    ("core/session/a.cpp", '#include "core/layers/layer.h"', "core/session may not"),
    ("app/cli/a.cpp", '#include "core/ops/device.h"\n#include "core/session/session.h"\n#include "app/cli/cli.h"', ""),
    ("app/cli/b.cpp", '#include "core/ops/ops.h"', "app may not include core/ops/ops.h"),
    ("app/studio/a.cpp", '#include <imgui.h>\n#include "core/layers/layer.h"', "app may not include core/layers/layer.h"),
    ("app/cli/c.cpp", "#include <imgui.h>", "<imgui.h> only under app/studio"),
    ("gpu/a.cu", '#include <cuda_runtime.h>\n#include <cublas_v2.h>\n#include "core/ops/ops.h"', ""),
    ("gpu/b.cu", '#include "core/layers/layer.h"', "gpu may not"),
    ("core/cpu/c.cpp", "#include <cuda_runtime.h>", "<cuda_runtime.h> only under gpu and tests/gpu/ptx"),
    ("core/cpu/d.cpp", "#include <cublasLt.h>", "<cublasLt.h> only under gpu and tests/gpu/ptx"),
    ("core/data/parquet/a.cpp", "#include <arrow/api.h>\n#include <parquet/properties.h>", ""),
    ("core/data/c.cpp", "#include <arrow/api.h>", "<arrow/api.h> only under core/data/parquet"),
    ("app/cli/d.cpp", "#include <sqlite3.h>", "<sqlite3.h> only under core/store"),
    ("core/base/b.h", "#include COMERA_HEADER", "cannot be checked"),
    ("core/extra/a.h", "", "has no rule"),
    ("tests/cpu/a.cpp", '#include "core/cpu/cpu_ops.h"\n#include "gpu/check.h"', ""),
]


def self_test():
    def run(files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files:
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text + "\n", encoding="utf-8")
            return violations(pathlib.Path(folder))

    real = ("core/cpu/real.h", "")
    wrong = []
    for path, text, expected in CASES:
        found = run([real, (path, text)])
        if len(found) != (1 if expected else 0) or (expected and expected not in found[0]):
            wrong.append(f"{path}: expected {expected or 'nothing'!r}, found {found}")
    two = run([("core/store/a.cpp", "#include <sqlite3.h>"), ("core/store/b.cpp", "#include <sqlite3.h>")])
    if len(two) != 1 or "2 files" not in two[0]:
        wrong.append(f"two files with sqlite3.h: found {two}")
    chain = [
        ("app/studio/a.cpp", '#include "core/session/a.h"'),
        ("app/studio/b.cpp", '#include "core/session/a.h"'),
        ("core/session/a.h", '#include "core/train/a.h"'),
        ("core/train/a.h", '#include "core/layers/a.h"'),
        ("core/layers/a.h", '#include "core/layers/b.h"'),
        ("core/layers/b.h", ""),
    ]
    through = run(chain)
    if through != ["app/studio/a.cpp sees core/layers/a.h through core/session/a.h, core/train/a.h"]:
        wrong.append(f"a layer seen through two headers: found {through}")
    cut = run([entry for entry in chain if entry[0] != "core/train/a.h"] + [("core/train/a.h", '#include "core/config/a.h"')])
    if cut:
        wrong.append(f"no layer is seen: found {cut}")
    if "nothing was checked" not in str(run([])):
        wrong.append("an empty tree passes")
    return wrong


if __name__ == "__main__":
    check.main(__doc__, violations, self_test, "includes: all as expected")
