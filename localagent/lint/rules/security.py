"""Rules on what an attacker likes."""

import ast
import shlex
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import Cut, FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
_RUNS = tuple(f"subprocess.{n}" for n in ("run", "call", "check_call", "check_output", "Popen"))
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "request")
_REQUESTS = tuple(f"requests.{n}" for n in _METHODS)
_SHELL = set("|&;<>()$`\\\"'*?[]#~=%{}!\n")


def keyword(node: ast.Call, name: str) -> ast.keyword | None:
    """A call's keyword argument."""
    return next((k for k in node.keywords if k.arg == name), None)


def _open_ended(node: ast.Call) -> bool:
    """Whether a call takes arguments that are not written out."""
    return any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args)


def added(view: FileView, node: ast.Call, text: str) -> tuple[Cut, ...] | None:
    """A cut that adds a keyword argument at a call's end; None where a comment or comma stands there."""
    last = [*node.args, *(k.value for k in node.keywords)]
    at = view.end(node) - 1
    if not last:
        start = view.end(node.func)
        return ((at, at, text),) if view.between(start, at) == "(" else None
    end = max(view.end(a) for a in last)
    between = view.between(end, at)
    if between.strip(" )"):
        return None
    if len(last) == 1 and isinstance(last[0], ast.GeneratorExp):
        return None
    return ((at, at, f", {text}"),) if "\n" not in between else None


@rule(
    "shell-constant",
    ast.Call,
    words=(b"shell",),
    why="A shell interprets what a list of arguments would pass unchanged.",
    bad=[
        bad(
            "import subprocess\nsubprocess.run('ls -l', shell=True)\n",
            "import subprocess\nsubprocess.run(['ls', '-l'])\n",
            _SUGGESTION,
        ),
        bad("import subprocess as s\ns.call('ls | wc', shell=True)\n"),
    ],
    good=[
        "import subprocess\nsubprocess.run(['ls'])\n",
        "import subprocess\nsubprocess.run('ls', shell=False)\n",
        "run('ls', shell=True)\n",
    ],
)
def shell_constant(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`shell=True` with a constant command. A suggestion: a shell reports a missing program in another way."""
    if not isinstance(node, ast.Call) or not node.args or not view.named(node.func, *_RUNS):
        return
    shell, command = keyword(node, "shell"), node.args[0]
    if shell is None or not isinstance(shell.value, ast.Constant) or shell.value.value is not True:
        return
    if isinstance(command, ast.Constant) and isinstance(command.value, str):
        cuts = None
        before = next((n for n in reversed([*node.args, *node.keywords]) if view.end(n) <= view.start(shell)), command)
        if (
            not set(command.value) & _SHELL
            and command.value.split()
            and view.between(view.end(before), view.start(shell)).strip() == ","
        ):
            parts = ", ".join(repr(p) for p in shlex.split(command.value))
            cuts = (view.put(command, f"[{parts}]"), (view.end(before), view.end(shell), ""))
        yield Hit(node, "pass a list of arguments, without a shell", cuts, _SUGGESTION)


@rule(
    "yaml-load",
    ast.Call,
    words=(b"yaml",),
    why="`yaml.load` without a safe loader creates any object, and runs any code, that the document names.",
    bad=[bad("import yaml\na = yaml.load(f)\n", "import yaml\na = yaml.safe_load(f)\n", _SUGGESTION)],
    good=[
        "import yaml\na = yaml.safe_load(f)\n",
        "import yaml\na = yaml.load(f, Loader=yaml.SafeLoader)\n",
        "import yaml\na = yaml.load(f, yaml.CSafeLoader)\n",
    ],
)
def yaml_load(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`yaml.load` without a loader. A suggestion: the text may rely on tags that `safe_load` refuses."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords and view.named(node.func, "yaml.load"):
        cuts = None
        if isinstance(node.func, ast.Attribute):
            end = view.end(node.func)
            cuts = ((end - len("load"), end, "safe_load"),)
        yield Hit(node, "use safe_load, or name a loader", cuts, _SUGGESTION)


@rule(
    "weak-hash",
    ast.Call,
    words=(b"md5", b"sha1"),
    why="MD5 and SHA-1 are broken, and hardened systems refuse them without `usedforsecurity=False`.",
    bad=[
        bad(
            "import hashlib\na = hashlib.md5(b)\n",
            "import hashlib\na = hashlib.md5(b, usedforsecurity=False)\n",
            _SUGGESTION,
        ),
        bad(
            "from hashlib import sha1\na = sha1()\n",
            "from hashlib import sha1\na = sha1(usedforsecurity=False)\n",
            _SUGGESTION,
        ),
    ],
    good=[
        "import hashlib\na = hashlib.sha256(b)\n",
        "import hashlib\na = hashlib.md5(b, usedforsecurity=False)\n",
        "md5(b)\n",
    ],
)
def weak_hash(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A weak hash without `usedforsecurity=False`. Only a person knows whether it is used for security."""
    if isinstance(node, ast.Call) and view.named(node.func, "hashlib.md5", "hashlib.sha1"):
        if keyword(node, "usedforsecurity") is None and not _open_ended(node):
            yield Hit(
                node,
                "weak hash without usedforsecurity=False",
                added(view, node, "usedforsecurity=False"),
                _SUGGESTION,
            )


@rule(
    "mktemp",
    ast.Call,
    words=(b"mktemp",),
    why="Somebody else may create a file or link of that name first.",
    bad=[bad("import tempfile\na = tempfile.mktemp()\n"), bad("from tempfile import mktemp as m\na = m('.x')\n")],
    good=["import tempfile\na = tempfile.mkstemp()\n", "a = self.mktemp()\n"],
)
def mktemp(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`tempfile.mktemp`, which only returns a name."""
    if view.call_of(node, "tempfile.mktemp"):
        yield Hit(node, "use mkstemp or NamedTemporaryFile")


@rule(
    "request-timeout",
    ast.Call,
    words=(b"requests",),
    why="Without a timeout the program waits forever if the server does not answer.",
    bad=[
        bad(
            "import requests\na = requests.get(url)\n",
            "import requests\na = requests.get(url, timeout=30)\n",
            _SUGGESTION,
        ),
    ],
    good=[
        "import requests\na = requests.get(url, timeout=5)\n",
        "import requests\na = requests.get(url, **more)\n",
        "requests = {}\na = requests.get(url)\n",
    ],
)
def request_timeout(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A call of `requests` without a timeout. Only a person knows how long to wait; the repair offers 30 seconds."""
    if isinstance(node, ast.Call) and view.named(node.func, *_REQUESTS):
        if keyword(node, "timeout") is None and not _open_ended(node):
            yield Hit(node, "no timeout", added(view, node, "timeout=30"), _SUGGESTION)


@rule(
    "verify-off",
    ast.Call,
    words=(b"verify",),
    why="An attacker in between can read and change everything.",
    bad=[bad("import requests\na = requests.get(url, verify=False, timeout=5)\n")],
    good=["import requests\na = requests.get(url, verify=path, timeout=5)\n", "f(verify=False)\n"],
)
def verify_off(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A request that does not verify the other side's certificate."""
    if (
        isinstance(node, ast.Call)
        and (off := keyword(node, "verify")) is not None
        and view.named(node.func, *_REQUESTS)
    ):
        if isinstance(off.value, ast.Constant) and off.value.value is False:
            yield Hit(node, "verify certificates, with the path of your authority's if needed")


RULES = (shell_constant, yaml_load, weak_hash, mktemp, request_timeout, verify_off)
