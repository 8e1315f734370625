"""New code asked for by name, and what it alone uses, needs no test; what stood, or is used elsewhere, does."""

import pytest

from localagent.app.agent.untested_code import untested
from localagent.domain.paths import RepoPath
from localagent.domain.verification import UnrunCode

PATH = RepoPath("pkg/cli.py")
SOURCE = """\
def cmd_remove(args):
    return _gone(args.name)


def _gone(name):
    return name


def main(args):
    return TABLE[args.command](args)


class Redirect:
    def __init__(self):
        self.status = 302


TABLE = {"remove": cmd_remove}
"""


@pytest.mark.parametrize(
    ("instruction", "left"),
    [
        ("Add a subcommand `remove` and a class Redirect", []),
        ("Add a subcommand `remove`", ["Redirect.__init__"]),
        ("Add a class Redirect", ["cmd_remove", "_gone"]),
        ("Make it better", ["cmd_remove", "_gone", "Redirect.__init__"]),
    ],
)
def test_new_code_that_was_named(instruction: str, left: list[str]) -> None:
    names = ("cmd_remove", "_gone", "Redirect.__init__")
    unrun = [UnrunCode(path=PATH, name=name, new=True) for name in names]
    assert [c.name for c in untested(unrun, [SOURCE], instruction)] == left


def test_what_stood_has_to_be_run_whatever_is_named() -> None:
    unrun = [UnrunCode(path=PATH, name="cmd_remove", new=False)]
    assert untested(unrun, [SOURCE], "change cmd_remove") == unrun


def test_a_helper_that_other_code_uses_too_has_to_be_run() -> None:
    unrun = [UnrunCode(path=PATH, name=name, new=True) for name in ("cmd_remove", "_gone")]
    used = SOURCE.replace("return TABLE", "_gone(args)\n    return TABLE")
    assert [c.name for c in untested(unrun, [used], "add `remove`")] == ["_gone"]


def test_what_is_given_to_a_call_with_a_text_of_the_instruction() -> None:
    source = "def zone(name):\n    return name\n\n\ndef parser(p):\n    p.add_argument('--tz', type=zone)\n"
    unrun = [UnrunCode(path=PATH, name="zone", new=True), UnrunCode(path=RepoPath("setup.py"), name="", new=False)]
    assert untested(unrun, [source], "Add an option --tz.") == []
    assert [c.name for c in untested(unrun, [source], "Add an option --day.")] == ["zone"]
