"""Uses that an instruction asks for without the one word: what is answered, and the nearest thing that is not."""

from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.gate.instruction_gates import for_instruction, instructed
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

POLICY = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")
GATES = PatchGates(instructed(POLICY))
ENVIRON = """
import os


def load(environ=None):
    environ = os.environ if environ is None else environ
    return {"host": environ.get("APP_HOST", "")}
"""
PREFIX = """
import os

BEGIN = "APP_"


def load(names):
    found = {}
    for name in names:
        variable = BEGIN + name.upper()
        if os.environ.get(variable):
            found[name] = os.environ.get(variable)
    return found
"""
STORE = """
import sqlite3


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(path)

    def all(self):
        return [self.made(r) for r in self.db.execute("SELECT a FROM t").fetchall()]

    def made(self, row):
        return row
"""
NAMED = STORE.replace("return [", "sql = 'SELECT a FROM t'\n        return [").replace('"SELECT a FROM t"', "sql")
HEADERS = """
class Client:
    def check(self, headers):
        for name, value in headers.items():
            if "!" in name + value:
                raise ValueError(name)
"""
TYPED = "    def one(self) -> sqlite3.Row:\n        return None\n\n"
TELLS = "print(headers)\n                "
XML = "import xml.etree.ElementTree as ET\n\n\ndef f(text):\n    return ET.fromstring(text)\n"
SHA1 = "import hashlib\n\n\ndef f(data):\n    return hashlib.sha1(data).hexdigest()\n"
COPY = "import shutil\n\n\ndef f(a, b):\n    shutil.copy2(a, b)\n"
IN_WORDS = "The settings come from the environment: APP_HOST and APP_PORT."


@pytest.mark.parametrize(
    ("before", "after", "instruction", "allowed"),
    [
        ("", ENVIRON, IN_WORDS, True),
        ("", ENVIRON.replace("APP_HOST", "AWS_SECRET"), IN_WORDS, False),
        ("", ENVIRON + "\n\ndef everything():\n    return dict(os.environ)\n", IN_WORDS, False),
        ("", PREFIX, IN_WORDS, True),
        ("", PREFIX.replace('"APP_"', '"AWS_"'), IN_WORDS, False),
        ("", PREFIX.replace("BEGIN + name.upper()", "name.upper()"), IN_WORDS, False),
        (STORE, STORE.replace("FROM t", "FROM t ORDER BY b"), "Sort them.", True),
        (STORE, STORE.replace("SELECT a FROM t", "DELETE FROM t"), "Sort them.", False),
        (STORE, STORE.replace("    def all", f"{TYPED}    def all"), "Add one.", True),
        (STORE, STORE.replace("SELECT a FROM t", "UPDATE t SET a = ? WHERE b = ?"), "Mark it.", True),
        (STORE, STORE.replace("SELECT a FROM t", "UPDATE t SET admin = 1 WHERE b = ?"), "Look at it.", False),
        ("", NAMED, "Keep the rows in a database.", True),
        ("", NAMED.replace("return [", "sql += self.more\n        return ["), "Keep the rows in a database.", False),
        ("", NAMED.replace("def all(self)", "def all(self, sql)"), "Keep the rows in a database.", False),
        (STORE, STORE.replace("SELECT a FROM t", "UPDATE t SET a = 'x' WHERE b = 'root'"), "Look at it.", False),
        ("class Client:\n    pass\n", HEADERS, "A header with ! is a ValueError.", True),
        ("class Client:\n    pass\n", HEADERS, "A name with ! is a ValueError.", False),
        ("class Client:\n    pass\n", HEADERS.replace("raise", f"{TELLS}raise"), "Check headers.", False),
        ("", XML, "Read an RSS feed.", True),
        ("", XML, "Read it.", False),
        ("", SHA1, "The tag is the SHA-1 of it.", True),
        ("", SHA1, "The tag is a digest of it.", False),
        ("", COPY, "Keep a copy of the old one.", True),
        ("", COPY, "Make it nicer.", False),
        ("", "import sys\n\n\ndef f():\n    return sys.stdin.read()\n", "Read what comes in.", True),
        ("", "import sys\n\nTEXT = sys.stdin.read()\n", "Read what comes in.", False),
        (
            "def f(x):\n    return valid_name(x)\n",
            "def f(x):\n    return is_name(x)\n",
            "Use the one `is_name` everywhere.",
            True,
        ),
        ("def f(x):\n    return valid_name(x)\n", "def f(x):\n    return other(x)\n", "Use the one `is_name`.", False),
    ],
)  # fmt: skip
def test_a_use_in_other_words(before: str, after: str, instruction: str, *, allowed: bool) -> None:
    entry = TreeChange(
        path=RepoPath("pkg/mod.py"), source=RepoPath("pkg/mod.py"),
        kind=ChangeKind.MODIFIED if before else ChangeKind.ADDED, before=before.encode(), after=after.encode(),
        before_mode=FileMode.REGULAR if before else None, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    left = for_instruction(GATES.review((entry,), everything=True), (entry,), instruction, POLICY)
    found = {f.rule for d in left if d.answer is not Allow.ALLOW for f in d.findings}
    assert (not found) is allowed, found
