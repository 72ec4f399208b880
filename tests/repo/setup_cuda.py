#!/usr/bin/env python3
"""When cmake/setup.sh gets the CUDA toolkit, NCCL and Arrow from PyPI, and what it says when it does not. The script itself runs; pip, the
driver and Debian's packages are stood in for."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What asks the driver prints $DRIVER; pip leaves a package with nvcc in it, or fails as without a network.
PYTHON = f"""#!/usr/bin/env bash
case "$*" in
  -c*) echo "${{DRIVER:-}}" ;;
  *"-m pip"*)
    echo called >>"$FOLDER/calls"
    [[ -z ${{NO_NETWORK:-}} ]] || {{ echo "ERROR: connection broken"; exit 1; }}
    cp "$FOLDER/toolkit.whl" "${{@: -1}}"
    ;;
  *) exec "{sys.executable}" "$@" ;;
esac
"""
ARROW_FILES = ("include/parquet/api/reader.h", "libarrow.so.1", "libparquet.so.1", "lib.py")
FILES = ("bin/nvcc", "nvvm/bin/cicc", "lib/libcublas.so.13", "lib/libcublasLt.so.13", "lib/libcudart.so.13")
ALL_INSTALLED = "#!/usr/bin/env bash\nfor name in \"${@:3}\"; do echo \"installed $name\"; done\n"
LIST = "# two of them\nnvidia-a==1.0 --hash=sha256:00\nnvidia-b==1.0 --hash=sha256:00\n"
PACKAGES = 2
NEW, OLD, FORCED, REFUSED = {"DRIVER": "13000"}, {"DRIVER": "12040"}, {"COMERA_CUDA": "pypi"}, {"COMERA_CUDA": "off"}
OFFLINE = {"NO_NETWORK": "1"}
NCCL, NO_NCCL = {"COMERA_NCCL": "on"}, {"COMERA_NCCL": "off"}  # by itself it is got where there are several GPUs, which no test can claim
ARROW = {"COMERA_ARROW": "on"}
# environment, options of the calls one after another, status of the last, packages asked for in all, toolkit there, what the
# last says ("" = nothing)
CASES = [
    ({}, [[]], 0, 0, False, ""),
    (OLD, [[]], 0, 0, False, "CUDA is left out: the NVIDIA driver runs CUDA 12.4 at most, 13.0 is needed (driver 580 or newer)"),
    (NEW, [[]], 0, PACKAGES, True, "getting the CUDA toolkit"),
    (NEW, [[], []], 0, PACKAGES, True, ""),
    ({**NEW, "CUDACXX": "nvcc"}, [[]], 0, 0, False, ""),
    ({**NEW, **REFUSED}, [[]], 0, 0, False, ""),
    (FORCED, [[], []], 0, PACKAGES, True, ""),
    ({**FORCED, "CUDACXX": "nvcc"}, [[]], 0, PACKAGES, True, "getting the CUDA toolkit"),
    ({**NEW, **OFFLINE}, [[]], 0, PACKAGES, False, "CUDA is left out: its toolkit did not come from PyPI: PyPI cannot be reached"),
    ({**NEW, **OFFLINE}, [[], []], 0, PACKAGES, False, "CUDA is left out: its toolkit did not come from PyPI (cmake/setup.sh --retry"),
    ({**NEW, **OFFLINE}, [[], ["--retry"]], 0, 2 * PACKAGES, False, "PyPI cannot be reached"),
    ({**FORCED, **OFFLINE}, [[]], 1, PACKAGES, False, "error: the CUDA toolkit did not come from PyPI: nvidia-a==1.0 nvidia-b==1.0"),
    (NCCL, [[]], 0, 1, False, "getting NCCL"),
    (NCCL, [[], []], 0, 1, False, ""),
    ({**NCCL, **NEW}, [[]], 0, PACKAGES + 1, True, "getting NCCL"),
    ({**NCCL, **REFUSED}, [[]], 0, 0, False, ""),
    ({**NO_NCCL, **NEW}, [[], []], 0, PACKAGES, True, ""),
    ({**NCCL, **OFFLINE}, [[]], 0, 1, False, "NCCL is left out, GPUs exchange gradients through the hosts: it did not come from PyPI: PyPI cannot be reached"),
    ({**NCCL, **OFFLINE}, [[], []], 0, 1, False, "NCCL is left out: it did not come from PyPI (cmake/setup.sh --retry"),
    ({**NCCL, **OFFLINE}, [[], ["--retry"]], 0, 2, False, "PyPI cannot be reached"),
    (ARROW, [[]], 0, 1, False, "getting Arrow"),
    (ARROW, [[], []], 0, 1, False, ""),
    ({"COMERA_ARROW": "off"}, [[]], 0, 0, False, ""),
    ({**ARROW, **OFFLINE}, [[]], 1, 1, False, "error: Arrow did not come from PyPI\n  why: PyPI cannot be reached"),
    ({"COMERA_CUDA": "yes"}, [[]], 1, 0, False, "error: COMERA_CUDA=yes is not known"),
]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def outcome(folder, environment, calls):
    """(status, packages asked for, whether the toolkit is there, what the last call said)"""
    shutil.copytree(ROOT / "cmake", folder / "cmake")
    (folder / "cmake/pypi-cuda.txt").write_text(LIST, encoding="utf-8")
    (folder / "cmake/pypi-nccl.txt").write_text("nvidia-n==1.0 --hash=sha256:00\n", encoding="utf-8")
    with zipfile.ZipFile(folder / "toolkit.whl", "w") as wheel:
        for name in FILES:
            wheel.writestr("nvidia/cu13/" + name, "")
        for name in ARROW_FILES:
            wheel.writestr("pyarrow/" + name, "")
    program(folder / "tools/python3", PYTHON)
    program(folder / "tools/dpkg-query", ALL_INSTALLED)
    # The other packages are there already.
    stamp = folder / "build/pypi/.stamp"
    stamp.parent.mkdir(parents=True)
    stamp.write_text(hashlib.sha256((ROOT / "cmake/pypi-requirements.txt").read_bytes()).hexdigest() + "\n", encoding="utf-8")
    clean = {"PATH": f"{folder}/tools:/usr/bin:/bin", "CUDA_PATH": f"{folder}/nothing", "FOLDER": str(folder)}
    for options in calls:
        done = subprocess.run([folder / "cmake/setup.sh", *options], env={**clean, **environment}, capture_output=True, text=True, check=False)
    asked = folder / "calls"
    root = folder / "build/pypi-cuda/nvidia/cu13"
    there = os.access(root / "bin/nvcc", os.X_OK) and (root / "lib64/libcublasLt.so").is_file() and not (root / "lib/libcublas.so.13").exists()
    arrow = sorted(path.name for path in (folder / "build/pypi-arrow/pyarrow").glob("*"))
    expected = ["include", "libarrow.so.1", "libparquet.so.1"] if environment.get("COMERA_ARROW") == "on" and "NO_NETWORK" not in environment else []
    left = [path.name for path in (folder / "build").iterdir() if path.name.endswith(".new")]
    said = done.stdout + done.stderr + "".join(f"left {name}" for name in left) + (f"Arrow: {arrow}" if arrow != expected else "")
    return done.returncode, len(asked.read_text().splitlines()) if asked.exists() else 0, there, said


def main():
    wrong = []
    for environment, calls, status, asked, there, says in CASES:
        with tempfile.TemporaryDirectory() as folder:
            got = outcome(pathlib.Path(folder, "with a space"), environment, calls)
        if got[:3] != (status, asked, there) or (says not in got[3] if says else got[3]):
            wrong.append(f"{environment}, {calls}: {got}, not {(status, asked, there, says)}")
    print("\n".join(wrong) if wrong else f"{len(CASES)} cases: all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
