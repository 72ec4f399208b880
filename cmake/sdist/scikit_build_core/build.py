"""The hooks that `pip download` calls, in the unpacked package (PEP 517). Nothing is ever built with them."""
import pathlib
import re
import shutil


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    text = pathlib.Path("PKG-INFO").read_text(encoding="utf-8")
    name, version = (re.search(f"^{key}: *(.+)$", text, re.MULTILINE)[1].strip() for key in ("Name", "Version"))
    folder = pathlib.Path(metadata_directory, f"{name.replace('-', '_')}-{version}.dist-info")
    folder.mkdir()
    shutil.copyfile("PKG-INFO", folder / "METADATA")
    return folder.name
