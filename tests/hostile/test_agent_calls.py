"""Hostile replies of a model: what they ask for is refused with its reason, nothing is written, nothing crashes."""

import json
from typing import Any

import pytest
from support.agent_builder import FILES, calls, session

from localagent.agent.events import EndKind, Replied, ResultKind
from localagent.domain.chat import ChatReply, ToolCall

EDIT = calls(("edit", {"path": "pkg/mod.py", "old": "return x\n", "new": "return -x\n"}))
FINISH = calls(("finish", {"summary": "done"}))
WRITERS = ("read", "edit", "create", "delete", "replace_function")
LINKS = {"out": "is a symbolic link, which is neither followed nor changed"}


def _arguments(tool: str, path: str) -> Any:
    more = {
        "read": {},
        "edit": {"old": "a", "new": "b"},
        "create": {"content": "x"},
        "delete": {},
        "replace_function": {"name": "f", "source": "def f():\n    pass\n"},
    }
    return {"path": path, **more[tool]}


@pytest.mark.parametrize("tool", WRITERS)
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../canary", "not a path inside the repository"),
        ("/etc/passwd", "not a path inside the repository"),
        ("a/../../b", "not a path inside the repository"),
        ("", "not a path inside the repository"),
        (".git/config", "the version control's own folder"),
        ("sub/.GIT/hooks/post-commit", "the version control's own folder"),
        ("a\nb.py", "control characters"),
        ("a\x1b[31m.py", "control characters"),
        ("a\0b", "control characters"),
        ("\u202egnp.py", "control characters"),
        ("x" * 10_000, "at most 500 characters"),
        ("out", "symbolic link"),
    ],
)
def test_paths_that_lead_elsewhere(tool: str, path: str, says: str) -> None:
    s = session([calls((tool, _arguments(tool, path))), EDIT, FINISH], links=LINKS)
    assert s.run().kind is EndKind.FINISHED
    assert list(s.writes) == ["pkg/mod.py"]
    if (tool, path) == ("create", "out"):
        says = "out exists"
    assert says in s.results[0].text
    assert s.results[0].kind is not ResultKind.DONE
    assert s.results[0].text.isprintable()


def test_ten_thousand_calls_in_a_reply_are_bounded() -> None:
    many = ChatReply(
        text="", calls=tuple(ToolCall(id="same", name="search", arguments='{"query": "f"}') for _ in range(10_000))
    )
    s = session([many, EDIT, FINISH])
    assert s.run().kind is EndKind.FINISHED
    first = next(e for e in s.log.events if isinstance(e, Replied))
    assert len(first.calls) == len({c.id for c in first.calls}) == 16


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * 200_000,
        '{"path":' * 50_000,
        json.dumps({"path": [[[[[["a"]]]]]]}),
        "null",
        "\ud800",
        '{"path": "\\ud800"}',
        '{"path": NaN}',
        "1" * 700_000,
        json.dumps({"path": "a.py", "content": "x" * 700_000}),
        '{"path": "a.py", "path": "b.py"}',
        '{"path": ' + "9" * 6000 + "}",
    ],
)
def test_odd_arguments_are_errors(arguments: str) -> None:
    for tool in ("create", "read"):
        s = session([calls((tool, arguments)), EDIT, FINISH])
        assert s.run().kind is EndKind.FINISHED
        assert s.results[0].kind is not ResultKind.DONE
        assert list(s.writes) == ["pkg/mod.py"]


@pytest.mark.parametrize("name", ["", "x" * 100_000, "\x1b[2J", "__class__", "edit'; drop", "🦀"])
def test_odd_names_are_errors(name: str) -> None:
    s = session([calls((name, {"path": "pkg/mod.py"})), EDIT, FINISH])
    assert s.run().kind is EndKind.FINISHED
    assert s.results[0].kind is ResultKind.ERROR


@pytest.mark.parametrize("content", ["x\0y", "\ud800", "x" * 500_000])
def test_contents_that_are_no_text_or_too_long(content: str) -> None:
    s = session([calls(("create", {"path": "new.txt", "content": content})), EDIT, FINISH])
    s.run()
    assert s.results[0].text.startswith("refused: ")
    assert list(s.writes) == ["pkg/mod.py"]


def test_what_a_file_says_cannot_drive_a_terminal_or_end_a_result() -> None:
    files = {**FILES, "evil.txt": "\x1b[2J\u202e hidden\r\x07\n"}
    s = session(
        [calls(("read", {"path": "evil.txt"})), calls(("search", {"query": "hidden"})), EDIT, FINISH], files=files
    )
    s.run()
    for result in s.results[:2]:
        assert not set(result.text) & set("\x1b\u202e\x07\r")


@pytest.mark.parametrize("tests", [["-p evil"], ["--rootdir=/"], ["../x"], ["/etc"], [""], ["a.py"] * 1 + ["x"] * 60])
def test_tests_are_no_options_and_no_ways_out(tests: list[str]) -> None:
    s = session([calls(("run_tests", {"tests": tests})), EDIT, FINISH])
    s.run()
    assert s.results[0].kind is not ResultKind.DONE
    assert not any(kind == "tests" for kind, *_ in s.runs.ran)


@pytest.mark.parametrize(
    ("step", "instruction", "goes"),
    [
        ("change pkg/mod.py", "make it so", False),
        ("delete pkg/mod.py", "make it so", True),
        ("change pkg/mod.py", "Remove f and g.", True),
        ("delete the old files", "Remove f and g.", False),
        ("look around", "pkg/mod.py is not wanted", True),
    ],
)
def test_a_file_of_the_tree_goes_only_where_plan_or_instruction_says_so(
    step: str, instruction: str, goes: bool
) -> None:
    plan, delete = calls(("plan", {"steps": [step]})), calls(("delete", {"path": "pkg/mod.py"}))
    s = session([plan, delete, FINISH], instruction=instruction)
    s.run()
    assert (s.writes == {"pkg/mod.py": None}) is goes
    assert goes or "is to go" in s.results[1].text


def test_a_plan_that_names_nothing_takes_back_no_plan() -> None:
    plan = calls(("plan", {"steps": ["change pkg/mod.py"]}))
    wide = calls(("plan", {"steps": ["change everything"]}))
    other = calls(("edit", {"path": "README.md", "old": "Read me", "new": "Run me"}))
    s = session([plan, wide, other, EDIT, FINISH])
    s.run()
    assert list(s.writes) == ["pkg/mod.py"]
    assert "outside the plan" in s.results[2].text
