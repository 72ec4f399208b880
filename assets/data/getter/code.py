"""Functions with docstrings in CodeSearchNet's JSONL, and CodeBERT's search pairs."""
import ast
import hashlib
import json
import re
import textwrap
from collections import defaultdict

from .bpe import tokenizer_json
from .job import SPLITS, clean, h64, split_of

TOKENS = 8192

PYDEBS = ["libpython3.11-minimal", "libpython3.11-stdlib", "python3-sympy", "python3-networkx", "python3-sklearn", "python3-pandas",
          "python3-statsmodels", "python3-sphinx", "python3-docutils", "python3-sqlalchemy", "python3-django", "python3-scipy",
          "python3-matplotlib", "python3-astropy"]


def doc_tokens(doc):
    first = re.split(r"\n\s*\n", doc.strip(), maxsplit=1)[0]
    return re.findall(r"\w+|[^\w\s]", first)


PY_TOK = re.compile(r"""(?P<s>(?i:[rbuf]{0,2})(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
                    r"""|(?P<c>\#[^\n]*)|(?P<n>\n)|(?P<w>[ \t\r\f\\]+)"""
                    r"""|(?P<t>0[xX][0-9a-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?\w*|\w+|\*\*=?|//=?|>>=?|<<=?|->|:=|[-+*/%&|^@=!<>]=|\.\.\.|[^\w\s])""", re.S)


def py_code_tokens(src):
    """CodeSearchNet's code_tokens: no comments, no docstrings (a regular expression, so that it does not
    depend on the interpreter's version as the tokenize module does)"""
    out, depth, fresh = [], 0, True
    for m in PY_TOK.finditer(src):
        k, t = m.lastgroup, m.group()
        if k == "n":
            fresh = depth == 0
        elif k == "s" and not (fresh and depth == 0):
            out.append(t)
        elif k == "t":
            out.append(t)
            depth += (t in "([{") - (t in ")]}")
        if k in "st":
            fresh = False
    return out


def py_functions(pkg, path, src):
    try:
        tree = ast.parse(src)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = src.splitlines(keepends=True)
    stack = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        for c in ast.iter_child_nodes(node):
            if isinstance(c, ast.ClassDef):
                stack.append((c, prefix + c.name + "."))
            elif isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef)):
                doc = ast.get_docstring(c)
                if not doc or (c.name.startswith("__") and c.name.endswith("__")) or "test" in c.name.lower():
                    continue
                code = textwrap.dedent("".join(lines[c.lineno - 1:c.end_lineno])).rstrip("\n")
                dt, ct = doc_tokens(doc), py_code_tokens("".join(lines[c.lineno - 1:c.end_lineno]))
                if ct is None or len(dt) < 3 or len(code.splitlines()) < 3 or len(ct) < 10 or len(code) > 20000:
                    continue
                yield {"repo": f"debian/{pkg}", "path": path, "func_name": prefix + c.name, "original_string": code, "language": "python",
                       "code": code, "code_tokens": ct, "docstring": doc, "docstring_tokens": dt, "sha": hashlib.sha1(src.encode()).hexdigest(),
                       "url": f"debian:{pkg}/{path}#L{c.lineno}-L{c.end_lineno}"}


GO_TOK = re.compile(r'`[^`]*`|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|\w+|<-|:=|\+\+|--|&&|\|\||[=!<>]=|<<|>>|\.\.\.|[^\w\s]', re.S)


def go_functions(pkg, path, src):
    lines = src.split("\n")
    i = 0
    while i < len(lines):
        m = re.match(r"func\s+(?:\(\s*(?:\w+\s+)?\*?(\w+)(?:\[[^\]]*\])?\s*\)\s*)?(\w+)", lines[i])
        if not m or not lines[i].rstrip().endswith("{"):
            i += 1
            continue
        j = i
        while j < len(lines) and lines[j] != "}":
            j += 1
        k = i
        while k > 0 and lines[k - 1].startswith("//"):
            k -= 1
        doc = "\n".join(l[2:].strip() for l in lines[k:i] if not re.match(r"//(go|line|export|\+build)[: ]", l)).strip()
        code = "\n".join(lines[i:j + 1])
        ct = [t for t in GO_TOK.findall(code) if not t.startswith(("//", "/*"))]
        dt = doc_tokens(doc)
        name = f"{m.group(1)}.{m.group(2)}" if m.group(1) else m.group(2)
        if len(dt) >= 3 and j - i >= 2 and len(ct) >= 10 and len(code) < 20000 and "test" not in m.group(2).lower():
            yield {"repo": f"debian/{pkg}", "path": path, "func_name": name, "original_string": code, "language": "go", "code": code,
                   "code_tokens": ct, "docstring": doc, "docstring_tokens": dt, "sha": hashlib.sha1(src.encode()).hexdigest(),
                   "url": f"debian:{pkg}/{path}#L{i+1}-L{j+1}"}
        i = j + 1


def functions(job, lang):
    """{split: functions with a docstring}, equal ones once, in hash order"""
    parts, seen = defaultdict(list), set()
    ext = ".py" if lang == "python" else ".go"
    ok = lambda p: p.endswith(ext) and not p.endswith("_test.go") and "/testdata/" not in p and "/tests/" not in p and "/test/" not in p \
        and "/vendor/" not in p and p.startswith("usr/")
    for pkg in PYDEBS if lang == "python" else ["golang-1.19-src"]:
        for path, data in sorted(job.archives.deb_files(pkg, ok)):
            try:
                src = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if len(src) > 300000 or re.search(r"^(//|#) Code generated .* DO NOT EDIT", src[:4000], re.M):
                continue
            for r in (py_functions if lang == "python" else go_functions)(pkg, path, src):
                k = hashlib.sha256((" ".join(r["code_tokens"])).encode()).hexdigest()
                if k not in seen:
                    seen.add(k)
                    parts[split_of("code", lang, path)].append(r)
    return {s: sorted(parts[s], key=lambda r: h64("order", "code", r["url"]))[:job.rows or None] for s in SPLITS}


def lines(rows, keys):
    return "".join(json.dumps({k: r[k] for k in keys}, ensure_ascii=False) + "\n" for r in rows)


def code(lang):
    def f(job):
        parts = functions(job, lang)
        for s in SPLITS:
            job.emit(f"{s}.jsonl", lines(parts[s], ("url", "func_name", "code", "docstring")), len(parts[s]))
        job.emit("tokenizer.json", tokenizer_json([r["code"] for r in parts["train"]], TOKENS), TOKENS)
    f.__doc__ = f"{lang} functions with docstrings, with the keys of CodeSearchNet, and a byte-level BPE tokenizer of the training split"
    return f


def code_search(lang):
    def f(job):
        for s, rows in functions(job, lang).items():
            out = []
            for i, r in enumerate(rows):
                j = h64("neg", r["url"]) % len(rows)
                if j == i:
                    j = (j + 1) % len(rows)
                for label, d in ((1, r), (0, rows[j])):
                    out.append({"url": r["url"], "docstring": clean(" ".join(d["docstring_tokens"])), "code": clean(" ".join(r["code_tokens"])), "label": label})
            out.sort(key=lambda x: h64("order", "pairs", json.dumps(x)))
            job.emit(f"{s}.jsonl", lines(out, ("docstring", "code", "label")), len(out))
    f.__doc__ = f"does this docstring describe this {lang} function: CodeBERT's search pairs, one true and one false for each function"
    return f
