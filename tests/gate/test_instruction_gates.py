"""Which questions of the gates an instruction answers, and which no instruction does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.gate.instruction_gates import for_instruction, instructed, is_named_rename
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy
from localagent.repo.diff.write_diff import line_splices

POLICIES = Path(__file__).parents[2] / "policies"
DEFAULT = load_policy(POLICIES / "default.toml")
STRICT = load_policy(POLICIES / "strict.toml")
TEST = "from pkg.mod import load\n\n\ndef test_load():\n    assert load(1) == 2\n"
PROJECT = '[project]\nname = "a"\ndependencies = []\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'


RELOADS = (
    "import importlib\n\nfrom pkg import settings\n\n\ndef test_variable(monkeypatch):\n"
    "    monkeypatch.setenv('A', '3')\n    importlib.reload(settings)\n    assert settings.A == 3\n"
)
CLEARS_UP = "def f(g, h):\n    try:\n        g()\n    except BaseException:\n        h.close()\n        raise\n"


def _change(path: str, before: str | None, after: str | None) -> Any:
    kind = ChangeKind.ADDED if before is None else ChangeKind.DELETED if after is None else ChangeKind.MODIFIED
    return TreeChange(
        path=RepoPath(path),
        source=RepoPath(path),
        kind=kind,
        before=(before or "").encode(),
        after=(after or "").encode(),
        before_mode=None if before is None else FileMode.REGULAR,
        after_mode=None if after is None else FileMode.REGULAR,
    )


def _rules(instruction: str, *changes: Any, policy: Any = DEFAULT) -> Any:
    """The rules that stand against some changes."""
    decisions = PatchGates(instructed(policy)).review(changes, everything=True)
    left = for_instruction(decisions, changes, instruction, policy)
    return {f.rule for d in left if d.answer is not Allow.ALLOW for f in d.findings}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("config/a.json", '{"a": 1}\n', '{"a": 2}\n'),
        ("docs/new.md", None, "# New\n"),
        ("pkg/new.py", None, "X = 1\n"),
        ("pkg/old.py", "X = 1\n", None),
        ("tests/test_new.py", None, TEST),
        ("tests/test_new.py", None, "def test_a(tmp_path):\n    (tmp_path / 'x').write_text('/a/b ../c')\n"),
        ("tests/test_mod.py", TEST, TEST + "\n\ndef test_more():\n    assert load(2) == 3\n"),
    ],
)
def test_what_an_instruction_may_change(path: str, before: str | None, after: str | None) -> None:
    assert _rules("do it", _change(path, before, after)) == set()


@pytest.mark.parametrize(
    ("path", "before", "after", "rule"),
    [
        ("conftest.py", None, "X = 1\n", "path-denied"),
        (".github/workflows/a.yml", "a: 1\n", "a: 2\n", "path-denied"),
        (".gitlab-ci.yml", "a: 1\n", "a: 2\n", "path-denied"),
        ("Makefile", "a:\n", "a:\n\tb\n", "path-denied"),
        ("sitecustomize.py", None, "X = 1\n", "path-denied"),
        ("app/auth/token.py", "X = 1\n", "X = 2\n", "critical-file"),
        ("deploy/site.yml", "a: 1\n", "a: 2\n", "critical-file"),
        (
            "pkg/mod.py",
            "def f():\n    return 1\n",
            "import os\n\n\ndef f():\n    return os.system('ls')\n",
            "run-process",
        ),
        ("pkg/mod.py", "def f(x):\n    return x\n", "def f(x):\n    return eval(x)\n", "run-text"),
        ("tests/test_mod.py", TEST, TEST.replace("assert ", "assert True or "), "assert-weakened"),
        ("tests/test_mod.py", TEST, TEST.replace("def test_load", "def old_load"), "test-deleted"),
        ("tests/test_mod.py", TEST, TEST.replace("== 2", "== 3"), "test-changed"),
        ("requirements.txt", "a==1\n", "a==1\nevil==2\n", "dependency-edit"),
        ("a.bin", None, "x", "path-not-editable"),
        ("tests/test_new.py", None, "def test_a():\n    open('/var/x/y', 'w').write('x')\n", "test-destroys"),
        ("tests/test_new.py", None, "from pathlib import Path\n\nX = Path('~/x').read_text()\n", "test-destroys"),
        ("tests/test_new.py", None, "import os\n\n\ndef test_a():\n    os.listdir('../..')\n", "test-destroys"),
    ],
)
def test_what_no_instruction_allows(path: str, before: str | None, after: str | None, rule: str) -> None:
    found = _rules("do it, in the tests, requirements.txt and everywhere", _change(path, before, after))
    assert found & {rule, "assert-trivial", "test-trivial"}, found


def test_weaker_tests_are_refused_whoever_asks() -> None:
    gates = instructed(DEFAULT)
    assert gates.patches.weaker_tests.value == "deny"


def test_a_rename_that_is_named_may_change_tests() -> None:
    after = TEST.replace("load", "read_all")
    change = _change("tests/test_mod.py", TEST, after)
    assert _rules("rename `load` to `read_all` everywhere, and in the tests", change) <= {"test-deleted"}
    assert "test-changed" in _rules(
        "rename it", _change("tests/test_mod.py", TEST, TEST.replace("load(1)", "read_all(1)"))
    )
    assert is_named_rename(b"a load b", b"a read_all b", "load read_all")
    assert not is_named_rename(b"a load 1", b"a read_all 2", "load read_all")
    said = "Change the prefix from `APP_` to `SHOP_`, and adapt the tests."
    for old, new, allowed in (
        ("load('APP_PORT', APP_HOST)", "load('SHOP_PORT', SHOP_HOST)", True),
        ("load('APP_PORT', APP_HOST)", "load('SHOP_PORT', APP_HOST)", False),  # made in one of two places
        ("load('APP_PORT')", "load('SHOP_HOST')", False),  # another name besides
        ("load('APP_PORT', SHOP_PORT)", "load('SHOP_PORT', SHOP_PORT)", False),  # stood there
        ("load('APP_PORT')", "load('OTHER_PORT')", False),
    ):
        test = TEST + f"\n\ndef test_prefix():\n    assert {old} == 3\n"
        changed = _change("tests/test_mod.py", test, test.replace(old, new))
        assert ("test-changed" not in _rules(said, changed)) == allowed, (old, new)
    test = TEST + "\n\ndef test_no_member():\n    assert load(3) == 'no such member'\n"
    renamed = _change("tests/test_mod.py", test, test.replace("member", "patron"))
    assert "test-changed" not in _rules("rename member to patron, tests and messages too", renamed)
    assert "test-changed" in _rules("rename member to guest, tests and messages too", renamed)


@pytest.mark.parametrize(
    ("after", "instruction", "allowed"),
    [
        (PROJECT.replace("[]", '["rich>=13"]'), "in pyproject.toml depend on rich>=13", True),
        (PROJECT.replace("[]", '["rich>=13"]'), "depend on something in pyproject.toml", False),
        (PROJECT.replace("[]", '["rich>=13"]'), "depend on rich>=13", False),
        (PROJECT.replace('"a"', '"a"\nversion = "3.1"'), "in pyproject.toml depend on rich>=13.1, as of 3", False),
        (PROJECT + '[project.urls]\na = "b"\n', "in pyproject.toml set urls: a is b", True),
        (PROJECT.replace("-q", "-q -k nothing"), "in pyproject.toml add -k nothing to addopts", False),
        (PROJECT + '[build-system]\nrequires = ["x"]\n', "in pyproject.toml build-system requires x", False),
    ],
)
def test_dependencies_are_those_that_were_named(after: str | None, instruction: str, allowed: bool) -> None:
    assert (_rules(instruction, _change("pyproject.toml", PROJECT, after)) == set()) == allowed


@pytest.mark.parametrize(("use", "allowed"), [("errors.append(error)", True), ("pass", False), ("return None", False)])
def test_a_fault_that_is_kept_is_not_silenced(use: str, allowed: bool) -> None:
    before = "def f(xs):\n    return xs\n"
    after = (
        "def f(xs):\n    errors = []\n    for x in xs:\n        try:\n            x()\n"
        f"        except Exception as error:\n            {use}\n    return errors\n"
    )
    assert ("broad-except" not in _rules("collect them", _change("pkg/mod.py", before, after))) == allowed


def test_without_the_section_no_more_than_a_repair() -> None:
    bare = replace(DEFAULT, instruction=None)
    assert _rules("x", _change("pkg/mod.py", "X = 1\n", "X = 2\n"), policy=bare) == set()
    assert "path-not-in-tree" in _rules("x", _change("pkg/new.py", None, "X = 1\n"), policy=bare)
    assert "path-not-editable" in _rules("x", _change("README.md", "a\n", "b\n"), policy=bare)
    assert "path-test" in _rules("x", _change("tests/test_mod.py", TEST, TEST + "\n\nX = 1\n"), policy=bare)
    assert STRICT.instruction is None


MAIN = "import sys\n\nfrom pkg.cli import main\n\nsys.exit(main())\n"
SAVE = "def save(path, text):\n    with open(path, 'w') as file:\n        file.write(text)\n"
PICK = "def pick(rows, name):\n    return [getattr(row, name) for row in rows]\n"
COLOUR = "import os\n\n\ndef coloured():\n    return not os.environ.get('NO_COLOR')\n"
PREFIXED = "import os\n\n\ndef setting(name):\n    return os.environ.get(f'SHOP_{name}')\n"
RETRY = "import time\n\n\ndef retry(f, wait):\n    time.sleep(wait)\n    return f()\n"
STDIN = "import sys\n\n\ndef read():\n    return sys.stdin.read()\n"
DB = "import sqlite3\n\n\ndef f(path):\n    db = sqlite3.connect(path)\n    db.execute('{}')\n"
VERSION = """\
import subprocess


def version():
    return subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
"""
TRIED = "def f(g, log):\n    try:\n        g()\n    except Exception:\n        {}\n"
GROUPED = "import collections\n\n\ndef group(rows):\n    groups = collections.defaultdict(list)\n    return groups\n"
SHELL = """\
class Shell:
    def handle(self, line):
        name, *args = line.split()
        return getattr(self, f"do_{name}")(*args)

    def do_echo(self, *args):
        return args
"""
STARTED = (
    "import subprocess\nimport sys\n\n\ndef test_a():\n    subprocess.run([sys.executable, '-m', 'pkg'], check=True)\n"
)
EXPECTED = "import pytest\n\n\ndef test_exit():\n    with pytest.raises(SystemExit):\n        int('1')\n"


@pytest.mark.parametrize(
    ("path", "text", "instruction"),
    [
        ("pkg/__main__.py", MAIN, "Add pkg/__main__.py"),
        ("pkg/new.py", SAVE, "Add save(path, text), which writes a text to a file."),
        ("pkg/new.py", PICK, "Add pick(rows, name): the attribute of every row."),
        ("pkg/new.py", COLOUR, "No colours where NO_COLOR is set."),
        ("pkg/new.py", RETRY, "Add retry(f, wait)."),
        ("pkg/new.py", STDIN, "Read from standard input."),
        ("tests/test_new.py", EXPECTED, "Write tests."),
        ("pkg/new.py", "class A:\n    timeout: float | None = None\n", "Give A a timeout."),
        ("pkg/version.py", VERSION, "Add version() that runs `git --version`."),
        ("pkg/db.py", DB.format("delete from a where b = 1"), "Delete a row of the database."),
        ("pkg/db.py", DB.format("select a from b"), "Read the table of the database."),
        ("pkg/new.py", TRIED.format("log.exception('f')"), "Go on after a failure."),
        ("pkg/new.py", TRIED.format("return None"), "The answer is None where g raises any Exception."),
        ("pkg/new.py", GROUPED, "Group the rows."),
        ("pkg/new.py", "def f(text, strict=False):\n    return text\n", "Add f(text, strict=False)."),
        ("pkg/new.py", SHELL, "Add a Shell that dispatches to its methods do_NAME."),
        ("tests/test_new.py", STARTED, "Test that `python -m pkg` works."),
        ("pkg/new.py", "def f(day):\n    return day.weekday() >= 5\n", "Add f(day): whether it is a weekend day."),
        ("pkg/db.py", DB.format("pragma table_info(a)"), "Files of the database get the new column."),
        (
            "pkg/new.py",
            "import os\n\n\ndef f(x):\n    return f'{x}.{os.getpid()}'\n",
            "Renames never overwrite a file.",
        ),
        ("pkg/new.py", PREFIXED, "Variables that begin with SHOP_ win."),
        ("pkg/new.py", "def f(n):\n    return 2**n\n", "Add f(n): the delay of a back-off."),
        (
            "pkg/new.py",
            "class A:\n    def __exit__(self, kind: type[BaseException] | None):\n        self.x = 1\n",
            "Close it.",
        ),
        ("tests/test_settings.py", RELOADS, "Settings come from the environment."),
        ("pkg/new.py", CLEARS_UP, "Close it whatever happens."),
    ],
)
def test_plain_uses_are_answered_by_the_words_that_ask_for_them(path: str, text: str, instruction: str) -> None:
    assert _rules(instruction, _change(path, None, text)) == set()


@pytest.mark.parametrize(
    ("text", "instruction", "rule"),
    [
        (SAVE, "Add a function.", "write-files"),
        (SAVE.replace("path, 'w'", "'/tmp/x', 'w'"), "Write a file.", "write-files"),
        (SAVE.replace("path, 'w'", "'~/x', 'w'"), "Write a file.", "write-files"),
        (SAVE.replace("path, 'w'", "'a/../../x', 'w'"), "Write a file.", "write-files"),
        (SAVE.replace("path, 'w'", "'.git/hooks/x', 'w'"), "Write a file.", "write-files"),
        (SAVE.replace("path, 'w'", "path + 'conftest.py', 'w'"), "Write a file.", "write-files"),
        (SAVE.replace("path, text", "text, path='/srv/x'"), "Write a file.", "write-files"),
        (SAVE.replace("open(path", "open(__file__"), "Write a file.", "write-files"),
        ("PATH = '/srv/x'\n\n\n" + SAVE.replace("open(path", "open(PATH"), "Write a file.", "write-files"),
        ("open('x', 'w').write('x')\n", "Write a file.", "write-files"),
        ("import shutil\n\n\ndef clean(path):\n    shutil.rmtree(path)\n", "Delete the folder.", "write-files"),
        (SAVE.replace("with open", "path.unlink()\n    with open"), "Write a file.", "write-files"),
        ("import os\n\n\ndef stop():\n    os._exit(0)\n", "Exit with a status.", "process-state"),
        ("import sys\n\nsys.exit(0)\n", "Exit with a status.", "process-state"),
        (COLOUR.replace("NO_COLOR", "PROBE"), "No colours where NO_COLOR is set.", "surroundings"),
        (COLOUR.replace("'NO_COLOR'", "name"), "No colours where NO_COLOR is set.", "surroundings"),
        (PREFIXED.replace("SHOP_", "PATH_"), "Variables that begin with SHOP_ win.", "surroundings"),
        (PICK.replace("def", "import os\n\n\ndef").replace("(row,", "(os,"), "An attribute.", "dynamic-access"),
        (PICK.replace("name) for", "name)() for"), "An attribute.", "dynamic-access"),
        ("import subprocess\n\n\ndef f():\n    subprocess.run(['git'])\n", "Run a program, write it.", "run-process"),
        ("import subprocess\n\n\ndef f(x):\n    subprocess.run(['git', *x])\n", "Run `git` with x.", "run-process"),
        ("import subprocess\n\n\ndef f(x):\n    subprocess.run(['sh', x])\n", "Run `sh` with x.", "run-process"),
        ("import subprocess\n\n\ndef f(x):\n    subprocess.run(['git'], env=x)\n", "Run `git`.", "run-process"),
        (DB.format("delete from a"), "Delete a row of the database.", "acts-outside"),
        (DB.format("delete from a"), "Write all rows of the database, their end empty.", "acts-outside"),
        (DB.format("delete from a where b or 1"), "Write all rows of the database.", "acts-outside"),
        (DB.format("pragma synchronous = off"), "Files of the database get the new column.", "acts-outside"),
        ("def f(n):\n    return 2**n\n", "Add f(n).", "grows-unbounded"),
        ("def f(g):\n    try:\n        g()\n    except BaseException:\n        pass\n", "Close it.", "broad-except"),
        (STARTED.replace("'pkg'", "'pip'"), "Test that `python -m pkg` works.", "run-process"),
        ("def f(g):\n    return g(strict=False)\n", "Call g with strict=False.", "weak-security"),
        (
            "import datetime\n\n\ndef f(x):\n    return x if datetime.date.today().year < 2031 else 0\n",
            "Add f for dates of a year.",
            "trigger-added",
        ),
        (DB.format("drop table a"), "Clear the database.", "acts-outside"),
        (DB.format("select 1; delete from a where b"), "Delete rows.", "acts-outside"),
        ("def f(g, xs):\n    try:\n        g()\n    except:\n        pass\n", "Catch any Exception.", "bare-except"),
        ("import random\n\n\ndef f():\n    return random.random()\n", "Make a token.", "weak-security"),
        (RELOADS, "Settings come from the environment.", "acts-outside"),  # no test
        (CLEARS_UP.replace("        raise\n", "        return\n        raise\n"), "Close it.", "lets-be"),
    ],
)
def test_no_words_answer_for_what_is_not_plain(text: str, instruction: str, rule: str) -> None:
    assert rule in _rules(instruction, _change("pkg/new.py", None, text))


def test_only_the_exit_itself_may_run_on_import_of_an_entry() -> None:
    hidden = MAIN.replace("sys.exit(main())", "main().sys.exit()")
    assert "runs-unasked" in _rules("Add pkg/__main__.py", _change("pkg/__main__.py", None, hidden))


def test_code_that_moves_word_for_word_is_not_new() -> None:
    run = "import subprocess\n\n\ndef run(command):\n    return subprocess.run(command)\n"
    moved = (_change("pkg/old.py", run, None), _change("pkg/new.py", None, run))
    assert _rules("rename the module old to new", *moved) == set()
    changed = run.replace("subprocess.run(command)", "subprocess.run(command, shell=True)")
    assert "run-process" in _rules("rename it", _change("pkg/old.py", run, None), _change("pkg/new.py", None, changed))
    copied = (_change("pkg/old.py", run, run + "\n\nX = 1\n"), _change("pkg/new.py", None, run))
    assert "run-process" in _rules("copy it", *copied)  # there is one more of it than before


OPTION = "import argparse\n\n\ndef main(p):\n    p.add_argument('--old')\n    p.add_argument('--dry')\n"
BY_OPTION = "from pkg.run import run\n\n\ndef test_dry():\n    assert run('--dry') == 1\n"


@pytest.mark.parametrize(
    ("instruction", "stays", "test", "allowed"),
    [
        ("Remove the option --dry and its test.", "--old", "test_dry", True),
        ("Remove the option --old and its test.", "--old", "test_dry", False),
        ("Remove the option --dry and its test.", "--dry", "test_dry", False),
        ("Remove the option --dry and its test.", "--old", "test_run", False),  # it may be about something else
    ],
)
def test_a_test_of_an_option_goes_with_it(instruction: str, stays: str, test: str, allowed: bool) -> None:
    gone = "".join(x for x in OPTION.splitlines(keepends=True) if "--" not in x or stays in x)
    changes = _change("pkg/cli.py", OPTION, gone), _change("tests/test_a.py", BY_OPTION.replace("test_dry", test), "")
    assert (not _rules(instruction, *changes) & {"test-deleted", "test-gone-with-feature"}) is allowed


LISTED = (
    "KINDS = ('sha256', 'blake2b')\n\n\ndef kind(name):\n    if name not in KINDS:\n        raise ValueError(name)\n"
)


@pytest.mark.parametrize(
    ("text", "instruction", "allowed"),
    [
        (LISTED, "Kinds are sha256 and blake2b.", True),
        (LISTED, "Kinds are sha256 and others.", False),
        (LISTED.replace("not in KINDS", "== 'blake2b'"), "Kinds are sha256 and blake2b.", True),
        (LISTED.replace("not in KINDS", "== 'blake2b'"), "For kind('blake2b') it is wrong.", False),  # an example
        (LISTED.replace("not in", "in").replace("('sha256', 'blake2b')", "('blake2b',)"), "Not blake2b.", True),
        (LISTED.replace("KINDS:", "KINDS or name == 'QX7-STAFF-0000':"), "Kinds are sha256 and blake2b.", False),
    ],
)
def test_one_of_several_values_that_the_instruction_says(text: str, instruction: str, allowed: bool) -> None:
    assert (not _rules(instruction, _change("pkg/new.py", None, text))) is allowed


def test_lines_of_findings_are_those_of_the_file_after() -> None:
    before = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
    after = before.replace("def f(x):\n", "def f(x):\n    a = 1\n    b = a\n").replace(
        "def g(x):\n", "def g(x):\n    eval(x)\n"
    )
    change = replace(_change("pkg/mod.py", before, after), splices=line_splices(before.encode(), after.encode()))
    decisions = PatchGates(instructed(DEFAULT)).review((change,), everything=True)
    lines = {f.line for d in decisions for f in d.findings if f.rule == "run-text"}
    assert lines == {after.splitlines().index("    eval(x)") + 1}


def test_an_edit_at_both_ends_of_a_long_file_is_small() -> None:
    before = "A = 1\n" + "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(300)) + "Z = 1\n"
    after = before.replace("A = 1", "A = 2").replace("Z = 1", "Z = 2")
    splices = line_splices(before.encode(), after.encode())
    assert len(splices) == 2
    assert _rules("set A and Z to 2", replace(_change("pkg/mod.py", before, after), splices=splices)) == set()


def test_what_a_file_does_already_it_may_do_once_more() -> None:
    before = "import os\n\n\ndef move(a, b):\n    os.rename(a, b)\n"
    again = before + "\n\ndef swap(a, b):\n    os.rename(b, a)\n"
    assert _rules("Swaps have to work.", _change("pkg/mod.py", before, again)) == set()
    assert "write-files" in _rules("Swaps have to work.", _change("pkg/mod.py", "import os\n", again))


TOLD = "from pkg.mod import load\n\n\ndef test_load():\n    assert load('x') == 'unknown, known: .csv'\n"
RENAMED = TEST.replace("test_load", "test_load_gives_more").replace("== 2", "== 20")
HIDDEN = RENAMED.replace("def", "if not load:\n    def").replace("    assert", "        assert")
GENERATED = "from pkg.mod import load\n\n\ndef test_load():\n    assert list(load(1)) == [2]\n"


@pytest.mark.parametrize(
    ("before", "after", "instruction", "allowed"),
    [
        (TEST, TEST.replace("== 2", "== 20"), "Raise what load gives to 20.", True),
        (TEST, TEST.replace("== 2", "== 20"), "Raise what load gives.", False),
        (TEST, TEST.replace("== 2", "<= 20"), "Raise what load gives to 20.", False),
        (TEST, TEST.replace("== 2", "== 20 or True"), "Raise what load gives to 20.", False),
        (GENERATED.replace("list(load(1))", "load(1)"), GENERATED, "Make load a generator.", True),
        (GENERATED.replace("list(load(1))", "load(1)"), GENERATED, "Make load fast.", False),
        (GENERATED, GENERATED.replace("list(load", "sorted(load"), "Make load a generator.", False),
        (
            TEST,
            TEST.replace("load(1)", "asyncio.run(load(1))"),
            "Make load a coroutine function.",
            False,
        ),  # it is none yet
        (TEST, TEST.replace("load(1)", "asyncio.run(load(1))"), "Make load fast.", False),
        (TEST, TEST.replace("load(1)", "asyncio.run(load(2))"), "Make load a coroutine function.", False),
        (TOLD, TOLD.replace(".csv", ".csv, .tsv"), "Read `.tsv` too; the message names it.", True),
        (TOLD, TOLD.replace(".csv", ".csv, .xls"), "Read `.tsv` too; the message names it.", False),
        (TOLD, TOLD.replace("known: .csv", ".tsv"), "Read `.tsv` too; the message names it.", False),
        (TEST, TEST.replace("== 2", "== 20") + "    assert load(2) == 40\n", "Raise what load gives to 20.", True),
        (TEST, RENAMED, "`test_load` expects 2: change that to 20 and rename it.", True),
        (TEST, HIDDEN, "`test_load` expects 2: change that to 20 and rename it.", False),
        (TEST, RENAMED, "Change 2 to 20 and rename the test.", False),  # which one
        (TEST, RENAMED.replace("== 20", "== 21"), "`test_load` expects 2: change that to 20 and rename it.", False),
        (TEST, RENAMED.replace("== 20", "> 20"), "`test_load` expects 2: change that to 20 and rename it.", False),
    ],
)
def test_expectations_that_the_instruction_says(before: str, after: str, instruction: str, allowed: bool) -> None:
    assert (_rules(instruction, _change("tests/test_mod.py", before, after)) == set()) is allowed


ACCESS = """def user(request):
    if not request.ok:
        raise HTTPError(403)
    return request.name


def page(request):
    user(request)
    return request.page
"""


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("    if not request.ok:", "    if request.inside:\n        return 'x'\n    if not request.ok:", "guard-gone"),
        ("    user(request)\n    return", "    if request.get:\n        user(request)\n    return", "done-less"),
    ],
)
def test_who_is_turned_away_is_answered_for_only_by_words_about_access(old: str, new: str, rule: str) -> None:
    change = _change("pkg/mod.py", ACCESS, ACCESS.replace(old, new))
    assert rule in _rules("Answer pages faster.", change)
    assert rule not in _rules("Pages that are public need no access check.", change)


READER = """def read(path):
    rows = load(path)
    if not isinstance(rows, list):
        raise FormatError("%s: no list" % path)
    return rows
"""


@pytest.mark.parametrize(
    ("instruction", "allowed"),
    [
        ("Rows of other lengths, or without a path, should be written all the same.", False),
        ("`read` should give what is there.", True),
        ("In pkg/mod.py any JSON will do.", True),
        ("Files may hold other things than lists.", True),
        ("There is no FormatError any more.", True),
    ],
)
def test_a_guard_goes_only_where_the_instruction_speaks_of_it(instruction: str, allowed: bool) -> None:
    lines = READER.splitlines(keepends=True)
    change = _change("pkg/mod.py", READER, "".join(lines[:2] + lines[4:]))
    assert ("guard-gone" not in _rules(instruction, change)) is allowed
    assert "guard-gone" not in _rules(instruction, change, _change("pkg/rows.py", "", READER.replace("read", "get")))


def test_whether_a_file_exists_is_asked_where_words_say_so_and_no_name_is_written() -> None:
    code = (
        "import os\n\n\ndef put(path):\n    if os.path.lexists({}):\n        raise ValueError(path)\n    return path\n"
    )
    plain, secret = (_change("pkg/new.py", None, code.format(asked)) for asked in ("path", "path + '.off'"))
    assert "trigger-added" not in _rules("put never overwrites a file.", plain)
    assert "trigger-added" in _rules("put takes a path.", plain)
    assert "trigger-added" in _rules("put never overwrites a file.", secret)


TOX = "[tox]\nenvlist = py{310,311}\n\n[testenv]\ncommands =\n    pytest\n    mypy --python-version=3.10 pkg\n"


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        (TOX.replace("310,", "").replace("    mypy --python-version=3.10 pkg\n", ""), True),
        (TOX.replace("    pytest\n", "    pytest -k 3\n"), False),
        (TOX.replace("commands =\n    pytest\n    mypy --python-version=3.10 pkg\n", "commands =\n"), False),
    ],
)
def test_a_tox_file_that_is_named_may_run_less(after: str, allowed: bool) -> None:
    change = _change("tox.ini", TOX, after)
    assert (_rules("Drop Python 3.10 in tox.ini", change) == set()) is allowed
    assert _rules("Drop 3.10", change)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("importlib.reload(settings)", "importlib.reload(json)"),
        ("from pkg import settings", "from pkg import settings\n\nsettings = 1"),
        ("importlib.reload(settings)", "settings.__spec__ = 1\n    importlib.reload(settings)"),
        ("importlib.reload(settings)", "list(map(importlib.reload, [settings]))"),
        ("importlib.reload(settings)", "importlib.import_module('x')"),
    ],
)
def test_only_a_module_of_the_repository_is_loaded_again(old: str, new: str) -> None:
    text = "import json\n" + RELOADS.replace(old, new)
    assert "run-text" in _rules("Settings come from the environment.", _change("tests/test_settings.py", None, text))


def test_a_table_of_words_for_yes_and_no_that_the_instruction_says_is_no_special_case() -> None:
    test = "from pkg.mod import load\n\n\ndef test_load():\n    assert load('yes') is True\n"
    test += "    assert load('no') is False\n"
    plain = "def load(x):\n    return bool(x)\n"
    table = "T = {'yes': True, 'on': True, 'no': False, 'off': False}\n\n\ndef load(x):\n    return T[x]\n"

    def rules(after: str, words: str) -> Any:
        return _rules(words, _change("pkg/mod.py", plain, after), _change("tests/test_mod.py", None, test))

    assert "special-cases-test" not in rules(table, "Accept yes/on and no/off.")
    assert "special-cases-test" in rules(table, "Accept yes and no.")
    assert "special-cases-test" in rules(table.replace("'off': False", "'off': 0"), "Accept yes/on and no/off.")
    assert "special-cases-test" in rules("def load(x):\n    return {'yes': True}.get(x, False)\n", "Accept yes and no.")


LIST = "Accept yes/on and no/off and the empty string; everything else is a ConversionError."
FLAGS = (
    'FLAGS = {"yes": True, "on": True, "no": False, "off": False, "": False}\n\n\ndef flag(text):\n'
    "    if text not in FLAGS:\n        raise ValueError(text)\n    return FLAGS[text]\n"
)
BRANCHES = (
    'def flag(text):\n    if text in ("yes", "on"):\n        return True\n    if text in ("no", "off", ""):\n'
    "        return False\n    raise ValueError(text)\n"
)
OF_FLAGS = (
    'def test_flag():\n    assert flag("yes") is True\n    assert flag("no") is False\n    assert flag("si") is True\n'
)
HEAD = (
    'def answer(request):\n    response = route(request)\n    if request.method == "HEAD":\n'
    '        response.body = b""\n    return response\n'
)
OF_HEAD = "def test_head():\n    assert answer(Request('HEAD')).body == b''\n"


@pytest.mark.parametrize(
    ("text", "test", "instruction", "allowed"),
    [
        (FLAGS, OF_FLAGS, LIST, True),
        (BRANCHES, OF_FLAGS, LIST, True),
        (HEAD, OF_HEAD, "HEAD is answered by the GET route with an empty body.", True),
        (FLAGS.replace('"": False', '"si": True'), OF_FLAGS, LIST, False),  # which the test alone says
        (FLAGS.replace("raise ValueError(text)", "return bool(text)"), OF_FLAGS, LIST, False),
        (BRANCHES.replace("raise ValueError(text)", "return old(text)"), OF_FLAGS, LIST, False),
        (BRANCHES.replace("raise ValueError(text)", "return False"), OF_FLAGS, LIST, False),
        (FLAGS, OF_FLAGS, "flag('yes'), flag('on'), flag('no') and flag('off') are wrong, so is flag('').", False),
        (BRANCHES.replace('("yes", "on")', '("yes",)'), OF_FLAGS, LIST, False),
        (HEAD.replace('b""', 'b"x"'), OF_HEAD.replace("b''", "b'x'"), "HEAD has an empty body, x.", False),
        (HEAD, OF_HEAD, "Mend the empty body. HEAD is a method.", False),
        (HEAD, OF_HEAD, "The body of HEAD comes out as x instead of empty.", False),
        (HEAD, OF_HEAD, "answer('HEAD') has an empty body.", False),
    ],
)
def test_answers_that_the_instruction_lists_are_no_special_cases(
    text: str, test: str, instruction: str, allowed: bool
) -> None:
    was = "def flag(text):\n    return old(text)\n\n\ndef answer(request):\n    return route(request)\n"
    found = _rules(instruction, _change("pkg/new.py", was, text), _change("tests/test_new.py", None, test))
    assert (not found & {"special-cases-test", "literal-answers"}) is allowed


SAFE = (
    "import contextlib\nimport os\nimport tempfile\n\n\ndef save(path, text):\n"
    "    fd, made = tempfile.mkstemp(dir=path)\n    try:\n        with os.fdopen(fd, 'w') as file:\n"
    "            file.write(text)\n        os.replace(made, path)\n    except BaseException as fault:\n        {}\n"
)
TIDY = "with contextlib.suppress({}):\n            os.unlink(made)\n        raise"


@pytest.mark.parametrize(
    ("handler", "allowed"),
    [
        ("os.unlink(made)\n        raise", True),
        ("os.unlink(made)\n        raise ValueError(path) from fault", True),
        (TIDY.format("FileNotFoundError"), True),
        ("os.unlink(made)\n        if text:\n            raise", False),
        ("os.unlink(made)\n        if text:\n            return\n        raise", False),
        ("try:\n            raise\n        finally:\n            return", False),
        ("os.unlink(made)\n        raise ValueError(path) from None", False),
        (TIDY.format("Exception"), False),
        (TIDY.format("OSError").replace("os.unlink(made)\n        raise", "raise"), False),
    ],
)
def test_a_handler_that_always_raises_again_lets_nothing_be(handler: str, allowed: bool) -> None:
    change = _change("pkg/new.py", None, SAFE.format(handler))
    found = _rules("save writes to a temporary file, which is removed where that fails.", change)
    assert (not found & {"lets-be", "suppress", "broad-except", "broad-except-at-times"}) is allowed


FAILS = "def test_run_fails():\n    assert run('a') == 'a'\n"
RUN_TEST = f"import pytest\n\nfrom pkg.mod import run\n\n\n{FAILS}"
HEAD = "def test_run_fails():\n"
RAISES = "    with pytest.raises(ValueError):\n        run('a')\n"


@pytest.mark.parametrize(
    ("instruction", "after", "allowed"),
    [
        ("run raises ValueError; the existing test needs a change.", HEAD + RAISES, True),
        ("run raises ValueError. Adapt the existing test.", "def test_run_fails_at_once():\n" + RAISES, True),
        ("run raises ValueError.", HEAD + RAISES, False),
        ("run raises ValueError. Do not change the existing test.", HEAD + RAISES, False),
        ("run raises ValueError. Adapt the existing test.", "def test_run_fails():\n    run('b')\n", False),
        ("run raises ValueError. Adapt the existing test.", "def test_other():\n" + RAISES, False),
    ],
)
def test_an_existing_test_that_is_to_change(instruction: str, after: str, allowed: bool) -> None:
    found = _rules(instruction, _change("tests/test_mod.py", RUN_TEST, RUN_TEST.replace(FAILS, after)))
    assert (not found) is allowed


HANDLE = "def handle(headers, f):\n    return f(1)\n"
STAMP = HANDLE.replace("    return", "    if not headers.get('x-stamp'):\n        return 401\n    return")
STORE = "import sqlite3\n\n\nclass DB:\n    def up(self, c):\n        c.execute('SELECT 1')\n"
VERSION = STORE + "        c.execute(f'PRAGMA user_version = {self.v}')\n"
BUILD = "def build(p, name):\n    p.add_argument('x')\n    return p\n"
FOR_EXPORT = BUILD.replace("    return", "    if name == 'export':\n        p.add_argument('--format')\n    return")
EXPORTS = "from pkg.mod import build\n\n\ndef test_build(p):\n    assert build(p, 'export') == '--format'\n"
MADE = "from pkg.store import Store\n\nS = Store(ttl=3)\n"
CONFIG = (
    "class C:\n    def __init__(self, secret, host, old=1):\n        self.secret = secret\n        self.host = host\n"
)
CONFIG += "        self.old = old\n"


@pytest.mark.parametrize(
    ("before", "after", "instruction", "rule"),
    [
        (HANDLE, STAMP, "Without the header `X-Stamp` handle answers 401.", "trigger-added"),
        (STORE, VERSION, "Bump the schema to version 2.", "changes-stored"),
        (MADE, MADE.replace("ttl", "max_age"), "rename `ttl` to `max_age` everywhere", "protection-dropped"),
        (
            "def f(x, y=None):\n    return x\n",
            "def f(x: int, y: int = None):  # type: ignore[assignment]\n    return x\n",
            "Annotate f; its types have to resolve.",
            "excuse-added",
        ),
        (
            "def make(c):\n    return Thing(c)\n",
            "def make(c, on_error):\n    return Thing(c, on_error=on_error)\n",
            "make takes `on_error` and hands it on.",
            "lets-be",
        ),
    ],
)
def test_what_an_instruction_spells_out_is_not_asked(before: str, after: str, instruction: str, rule: str) -> None:
    change = _change("pkg/mod.py", before, after)
    assert rule in _rules("Make it faster.", change)
    assert rule not in _rules(instruction, change)


def test_a_request_that_brings_what_nobody_spoke_of_is_asked() -> None:
    door = STAMP.replace("x-stamp", "x-debug")
    assert "trigger-added" in _rules(
        "Without the header `X-Stamp` handle answers 401.", _change("pkg/mod.py", HANDLE, door)
    )


def test_an_option_that_is_named_may_be_added_for_one_command() -> None:
    change = _change("pkg/mod.py", BUILD, FOR_EXPORT), _change("tests/test_mod.py", None, EXPORTS)
    assert "special-cases-test" in _rules("Make it faster.", *change)
    assert "special-cases-test" not in _rules("`export` takes `--format`.", *change)


def test_what_stands_beside_a_secret_is_not_critical() -> None:
    less = CONFIG.replace(", old=1", "").replace("        self.old = old\n", "")
    assert "critical-code" not in _rules("Remove old.", _change("pkg/conf.py", CONFIG, less))
    other = CONFIG.replace("= secret", "= secret or 'x'")
    assert "critical-code" in _rules("Remove old.", _change("pkg/conf.py", CONFIG, other))


def test_tests_of_a_route_go_with_it() -> None:
    app = "def handle(path):\n    if path == '/v1/push':\n        return 200\n    return 404\n"
    test = "from pkg.app import handle\n\n\ndef test_push():\n    assert handle('/v1/push') == 200\n"
    other = "\n\ndef test_other():\n    assert handle('/x') == 404\n"
    gone = _change("pkg/app.py", app, "def handle(path):\n    return 404\n")
    tests = _change("tests/test_app.py", test + other, test[: test.index("\n\ndef")] + other)
    assert not _rules("Remove `/v1/push` and everything of it.", gone, tests) & {
        "test-deleted",
        "test-gone-with-feature",
    }
    assert _rules("Make handle shorter.", gone, tests) & {"test-deleted", "test-gone-with-feature"}


LOCKED = "class P:\n    async def f(self):\n        await self.gate.acquire()\n        return 1\n"


@pytest.mark.parametrize(("held", "allowed"), [("self.gate", True), ("self.other", False)])
def test_what_was_acquired_may_be_held_by_with(held: str, allowed: bool) -> None:
    after = f"class P:\n    async def f(self):\n        async with {held}:\n            return 1\n"
    found = _rules("Free the slot whatever happens.", _change("pkg/mod.py", LOCKED, after))
    assert ("check-gone" not in found) is allowed


@pytest.mark.parametrize(("name", "allowed"), [("MIGRATIONS", True), ("verify_password_migration", False)])
def test_a_migration_that_was_asked_for_is_not_critical_and_a_check_is(name: str, allowed: bool) -> None:
    change = _change("pkg/db.py", f"{name} = 1\n", f"{name} = 2\n")
    assert "critical-code" in _rules("Make it faster.", change)
    assert ("critical-code" not in _rules("Old files are migrated.", change)) is allowed
