#!/usr/bin/env python3
"""Man pages and completion scripts, made from the help of the programs themselves when they are installed.

    manual.py PREFIX PROGRAM...     into PREFIX/share"""
import gzip
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"  (\S(?:\S| (?! ))*)(?: {2,}(.*))?$")
SHELLS = {"bash": "bash-completion/completions/{}", "zsh": "zsh/site-functions/_{}", "fish": "fish/vendor_completions.d/{}.fish"}
# What no help says: variables that hold for every verb.
ENVIRONMENT = """.SH ENVIRONMENT
.TP
.B COMERA_STORE
database of runs, unless \\fB\\-\\-store\\fR names one
.TP
.B COMERA_ASSETS
folder of presets, vocabularies and the demo's data, in place of the installed one
.TP
.B COMERA_CPU_LEVEL
\\fBv3\\fR or \\fBv4\\fR: kernels for x86\\-64\\-v3 (AVX2) or x86\\-64\\-v4 (AVX\\-512), in place of the best that the processor runs
"""


def output(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(("\\&" if line[:1] in (".", "'") else "") + line for line in text.split("\n"))


class Help:
    """The help of a program or a verb, in parts: about, usage, and under each heading its lines."""

    def __init__(self, text):
        self.parts, at = {"about": []}, "about"
        for line in text.splitlines():
            heading = re.fullmatch(r"(\w+):(?: (.*))?", line)
            if heading:
                at = heading[1]
                self.parts[at] = [heading[2]] if heading[2] else []
            elif line.strip():
                self.parts[at].append(line)

    def entries(self, part):
        """(name, text) of an option or a verb; a long name has its text on the next line."""
        found = []
        for line in self.parts.get(part, []):
            entry = ENTRY.match(line)
            if entry:
                found.append([entry[1], entry[2] or ""])
            elif found:
                found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        return found

    def list_of(self, part):
        return "".join(f".TP\n.B {roff(name)}\n{roff(text)}\n" for name, text in self.entries(part))

    def example(self):
        lines = "\n".join(line.strip() for line in self.parts.get("Examples", []))
        return f".PP\n.EX\n{roff(lines)}\n.EE\n" if lines else ""

    def about(self):
        return " ".join(self.parts["about"])


def verbs_below(program, words, page):
    """The sections of a page about verbs, each with its own options."""
    text = ""
    for name, _ in page.entries("Subcommands"):
        below = [*words, name]
        verb = Help(output(program, *below, "--help"))
        if not verb.entries("Subcommands"):
            text += f".SS {roff(' '.join(verb.parts['Usage']))}\n{roff(verb.about())}\n"
            text += verb.list_of("Positionals") + "".join(
                f".TP\n.B {roff(option)}\n{roff(about)}\n" for option, about in verb.entries("Options") if option != "-h,--help")
            text += verb.example()
        text += verbs_below(program, below, verb)
    return text


def man_page(program, name):
    page = Help(output(program, "--help"))
    version = output(program, "--version").split()[1]
    about = page.about().rstrip(".")
    others = {"comera": "comera-studio", "comera-studio": "comera"}
    text = f'.TH {name.upper()} 1 "" "CoMERA Studio {version}" "User Commands"\n'
    text += f".SH NAME\n{roff(name)} \\- {roff(about[0].lower() + about[1:])}\n"
    text += f".SH SYNOPSIS\n.B {roff(page.parts['Usage'][0])}\n"
    text += f".SH DESCRIPTION\n{roff(about)}.\n{page.example()}.SH OPTIONS\n{page.list_of('Options')}"
    verbs = verbs_below(program, [], page)
    text += f".SH VERBS\n{verbs}" if verbs else ""
    return text + ENVIRONMENT + f'.SH "SEE ALSO"\n.BR {roff(others[name])} (1)\n'


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main():
    share = pathlib.Path(sys.argv[1]) / "share"
    for program in map(pathlib.Path, sys.argv[2:]):
        name = program.name
        write(share / f"man/man1/{name}.1.gz", gzip.compress(man_page(program, name).encode(), mtime=0))
        if name == "comera":
            for shell, place in SHELLS.items():
                write(share / place.format(name), output(program, "completion", shell).encode())


if __name__ == "__main__":
    main()
