"""Existing tests that change because the instruction says so: which changes it answers, and which stay refused."""

from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.gate.instruction_gates import for_instruction, instructed
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

POLICY = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")
TEST_FILE = "tests/test_mod.py"


def change(path: str, before: str, after: str) -> TreeChange:
    kind = ChangeKind.ADDED if not before else ChangeKind.DELETED if not after else ChangeKind.MODIFIED
    return TreeChange(
        path=RepoPath(path), source=RepoPath(path), kind=kind, before=before.encode(), after=after.encode(),
        before_mode=FileMode.REGULAR if before else None, after_mode=FileMode.REGULAR if after else None,
    )  # fmt: skip


def asked(instruction: str, *changes: TreeChange) -> dict[str, list[str]]:
    """What stands against changes: by rule, what is said of each place."""
    decisions = PatchGates(instructed(POLICY)).review(changes, everything=True)
    left = for_instruction(decisions, changes, instruction, POLICY)
    found: dict[str, list[str]] = {}
    for finding in (f for d in left if d.answer is not Allow.ALLOW for f in d.findings):
        found.setdefault(finding.rule, []).append(finding.message)
    return found


PREFIX = "The prefix changes from `APP_` to... make it `ENVCONF_`. Adapt the tests."
ENVIRONMENT = (
    "from pkg.mod import load\n\n\ndef test_env(monkeypatch):\n    monkeypatch.setenv('APP_HOST', 'h')\n"
    "    assert load({'APP_PORT': '9'}).port == 9\n"
)
CONCEPT = 'Librarians say "patron", not "member": rename it throughout, `add_member` -> `add_patron`, and the tests.'
MEMBERS = (
    "from pkg.mod import LIB\n\n\ndef test_add_member():\n    assert LIB.add_member('Ann').members == 'no member'\n"
)


@pytest.mark.parametrize(
    ("before", "after", "instruction", "allowed"),
    [
        (ENVIRONMENT, ENVIRONMENT.replace("APP_", "ENVCONF_"), PREFIX, True),
        (ENVIRONMENT, ENVIRONMENT.replace("APP_", "OTHER_"), PREFIX, False),
        (ENVIRONMENT, ENVIRONMENT.replace("APP_", "ENVCONF_").replace("== 9", "== 8"), PREFIX, False),
        (ENVIRONMENT, ENVIRONMENT.replace("APP_", "ENVCONF_").replace("== 9", ">= 9"), PREFIX, False),
        (MEMBERS, MEMBERS.replace("member", "patron"), CONCEPT, True),
        (MEMBERS, MEMBERS.replace("member", "reader"), CONCEPT, False),
        (MEMBERS, MEMBERS.replace("member", "patron").replace("'no patron'", "'no one'"), CONCEPT, False),
        (MEMBERS, MEMBERS.replace("member", "patron").replace(" == 'no patron'", ""), CONCEPT, False),
        (MEMBERS + "    assert 'patron' != 'member'\n", MEMBERS.replace("member", "patron"), CONCEPT, False),
    ],
)
def test_a_replacement_that_is_stated_and_made_throughout(
    before: str, after: str, instruction: str, allowed: bool
) -> None:
    assert (asked(instruction, change(TEST_FILE, before, after)) == {}) is allowed


READ = "def read(path):\n    return path.read_text()\n"
ASYNC = "import asyncio\n\n\nasync def read(path):\n    return await asyncio.to_thread(path.read_text)\n"
READS = "import asyncio\n\nfrom pkg.mod import other, read\n\n\ndef test_read(p):\n    assert read(p) == 'a'\n"
RUN = READS.replace("read(p) ==", "asyncio.run(read(p)) ==")


@pytest.mark.parametrize(
    ("source", "before", "after", "instruction", "allowed"),
    [
        (ASYNC, READS, RUN, "Make read a coroutine function and adapt the tests.", True),
        (READ, READS, RUN, "Make read a coroutine function and adapt the tests.", False),
        (ASYNC, READS, RUN, "Make read fast and adapt the tests.", False),
        (ASYNC, READS, RUN.replace("'a'", "'b'"), "Make read a coroutine function and adapt the tests.", False),
        (ASYNC, READS, RUN.replace("read(p))", "other(p))"), "Make read a coroutine function, adapt tests.", False),
        (ASYNC, READS, RUN.replace("read(p)) ==", "read(p)) and"), "Make read a coroutine function.", False),
        (
            ASYNC,
            READS,
            RUN.replace("import asyncio\n", "import asyncio\n\nasyncio = type('A', (), {'run': lambda c: 'a'})\n"),
            "Make read a coroutine function and adapt the tests.",
            False,
        ),
    ],
)
def test_a_call_is_run_where_the_function_became_a_coroutine(
    source: str, before: str, after: str, instruction: str, allowed: bool
) -> None:
    found = asked(instruction, change("pkg/mod.py", READ + "\n# x\n", source), change(TEST_FILE, before, after))
    assert found.keys().isdisjoint({"test-changed", "assert-weakened", "assert-removed"}) is allowed


TOKEN = 'from collections import namedtuple\n\nToken = namedtuple("Token", "kind text")\n'
LINED = TOKEN.replace("kind text", "kind text line")
TOKENS = "from pkg.mod import Token, lex\n\n\ndef test_lex():\n    assert lex('a') == [Token('text', 'a')]\n"


@pytest.mark.parametrize(
    ("source", "after", "instruction", "allowed"),
    [
        (LINED, TOKENS.replace("'a')]", "'a', 1)]"), "Tokens get a third field `line`, tests included.", True),
        (LINED, TOKENS.replace("'a')]", "'a', line=1)]"), "Tokens get a third field `line`, tests included.", True),
        (LINED, TOKENS.replace("'a')]", "'a', 1)]"), "Tokens say where they stand.", False),
        (LINED, TOKENS.replace("'a')]", "'b', 1)]"), "Tokens get a third field `line`, tests included.", False),
        (LINED, TOKENS.replace("'a')]", "'a', lex('x'))]"), "Tokens get a third field `line`.", False),
        (TOKEN, TOKENS.replace("'a')]", "'a', 1)]"), "Tokens get a third field `line`, tests included.", False),
        (
            LINED.replace("line\")", "line\", defaults=[0])"),  # nothing that a call has to give
            TOKENS.replace("'a')]", "'a', 1)]"),
            "Tokens get a third field `line`, tests included.",
            False,
        ),
    ],
)  # fmt: skip
def test_a_call_gives_what_is_newly_required_and_named(
    source: str, after: str, instruction: str, allowed: bool
) -> None:
    found = asked(instruction, change("pkg/mod.py", TOKEN + "\n# x\n", source), change(TEST_FILE, TOKENS, after))
    assert ("test-changed" not in found) is allowed


FORMAT = "def show(x):\n    return f'{x:.1f}'\n"
WRITERS = f"{FORMAT}\n\ndef write(x):\n    return show(x)\n"
REST = "from pkg.units import show\n\n\ndef write(x):\n    return show(x)\n"
SHOWS = "def test_show():\n    assert show(1) == '1.0'\n"
OLD = f"from pkg.mod import show, write\n\n\ndef test_write():\n    assert write(1) == '1.0'\n\n\n{SHOWS}"
LESS = OLD.replace("show, ", "").replace(f"\n\n\n{SHOWS}", "\n")
NEW = f"from pkg.units import show\n\n\n{SHOWS}"


@pytest.mark.parametrize(
    ("new", "rest", "allowed"),
    [
        (NEW, REST, True),
        (NEW.replace("pkg.units", "pkg.mod"), REST, True),
        (NEW.replace("== '1.0'", "!= ''"), REST, False),
        (NEW.replace("pkg.units", "pkg.fake"), REST, False),
        (NEW, WRITERS, False),  # what it tested is still there, and is not what is tested now
        (NEW.replace("\n\n\ndef", "\n\nshow = {1: '1.0'}.get\n\n\ndef"), REST, False),
        ("import pytest\n" + NEW.replace("\n\n\ndef", "\n\npytestmark = pytest.mark.skip\n\n\ndef"), REST, False),
        (NEW.replace("    assert", "    return\n    assert"), REST, False),
        ("import pytest\n" + NEW.replace("def test", "@pytest.mark.skip\ndef test"), REST, False),
    ],
)
def test_a_test_that_moves_word_for_word_is_not_gone(new: str, rest: str, allowed: bool) -> None:
    changes = [change("pkg/mod.py", WRITERS + "\n# x\n", rest), change("pkg/units.py", "", FORMAT)]
    changes += [change(TEST_FILE, OLD, LESS), change("tests/test_units.py", "", new)]
    found = asked("Move show to pkg/units.py, its tests to their own file; it stays importable.", *changes)
    assert ("test-deleted" not in found) is allowed


LEGACY = "def is_legacy(x):\n    return x.startswith('OLD')\n"
USES = "from pkg import legacy\n\n\ndef norm(x):\n    return 'P' if legacy.is_legacy(x) else x\n"
NORM = "from pkg.mod import norm\n\n\ndef test_norm():\n    assert norm('a') == 'a'\n"


@pytest.mark.parametrize(
    ("name", "source", "instruction", "allowed"),
    [
        ("test_norm_legacy", "def norm(x):\n    return x\n", "Remove pkg/legacy.py, its use and its tests.", True),
        ("test_norm_blanks", "def norm(x):\n    return x\n", "Remove pkg/legacy.py, its use and its tests.", False),
        ("test_norm_legacy", USES + "\n# x\n", "Remove pkg/legacy.py, its use and its tests.", False),
        ("test_norm_legacy", "def norm(x):\n    return x\n", "Make norm shorter.", False),
    ],
)
def test_a_test_of_the_use_of_a_removed_thing_goes_with_it(
    name: str, source: str, instruction: str, allowed: bool
) -> None:
    more = NORM + f"\n\ndef {name}():\n    assert norm('OLD1') == 'P'\n"
    changes = change("pkg/mod.py", USES, source), change("pkg/legacy.py", LEGACY, ""), change(TEST_FILE, more, NORM)
    found = asked(instruction, *changes)
    assert found.keys().isdisjoint({"test-deleted", "test-gone-with-feature"}) is allowed


def test_other_values_are_told_by_themselves_and_alike() -> None:
    after = ENVIRONMENT.replace("APP_", "OTHER_").replace("'h'", "'i'")
    assert asked(PREFIX, change(TEST_FILE, ENVIRONMENT, after)) == {
        "test-changed": ["test_env: 'APP_HOST' became 'OTHER_HOST'"]
    }
