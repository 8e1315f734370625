"""What a person meets before any verb runs: the help, and words that are no verb. How a verb that raises ends."""

import argparse
import json
from pathlib import Path
from typing import NoReturn

import pytest

from localagent.cli import history
from localagent.cli.main import VERBS, main
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, CannotEnforce, Interrupted, UsageFault


def test_help_says_what_it_is_where_to_begin_and_names_every_verb_on_one_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "an air-gapped coding agent" in out
    assert "localagent doctor" in out
    named = {
        word
        for line in out.splitlines()
        if (verb := line.partition("also: ")[2] or line[2:16])
        for word in verb.split(", ")
    }
    assert set(VERBS) <= {word.strip() for word in named}
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) <= 50


def test_the_verb_help_explains_every_verb_or_the_options_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb:14} {text}\n" in out for verb, (_, text) in VERBS.items())
    assert main(["help", "audit"]) == 0
    asked = capsys.readouterr().out
    assert main(["audit", "--help"]) == 0
    assert capsys.readouterr().out == asked
    assert main(["help", "me"]) == 2
    assert "unknown verb 'me'" in capsys.readouterr().err


def test_without_a_verb_the_help_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "getting started:" in said.err


def test_a_misspelled_verb_is_told_with_what_is_spelled_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["veryfi", "x.diff"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "unknown verb 'veryfi'" in said.err
    assert "did you mean verify?" in said.err


def test_a_word_like_none_is_told_where_the_verbs_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["\x1b[31mzzz"]) == 2
    said = capsys.readouterr().err
    assert "localagent help lists the verbs" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("verb", ["hook", "audit", "model", "key", "deps", "policy", "tasks", "batch"])
def test_a_verb_of_several_given_nothing_says_what_it_takes(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"usage: localagent {verb} [-h] ")
    assert VERBS[verb][1] in " ".join(said.err.split())
    assert f"localagent {verb}: error: the following arguments are required" in said.err


def test_wrong_use_names_the_help_of_its_verb_or_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify", "--heda", "x"]) == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments" in said
    assert said.endswith("what to do: did you mean --head? localagent audit verify --help\n")
    assert main(["audit", "verify", "--zzz", "x"]) == 2
    assert capsys.readouterr().err.endswith("what to do: localagent audit verify --help\n")
    assert main(["audit", "verify", "--head"]) == 2
    assert capsys.readouterr().err.endswith("what to do: localagent audit verify --help\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["fix", "--modle", "x"], "--model"),
        (["fix", "--max-second=3"], "--max-seconds"),
        (["fix", "a folder"], "--repo 'a folder'"),
        (["fix", "tests.py::test_one"], "--test tests.py::test_one"),
        (["verify", "fix.diff", "tests.py"], "--test tests.py"),
        (["fix", "nothing"], ""),
        (["history", "a folder"], ""),
        (["fix", "\x1b[31m::x"], "--test '\\x1b[31m::x'"),
    ],
)
def test_what_may_have_been_meant_is_asked(
    words: list[str], meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "tests.py").touch()
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    remedy = capsys.readouterr().err.splitlines()[-1]
    asked = f"did you mean {meant}? " if meant else ""
    assert remedy == f"  what to do: {asked}localagent {words[0]} --help"


def test_a_file_whose_name_begins_with_a_dash_is_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-x.py", "-h.py", "--json.py"):
        (tmp_path / name).write_text("def f(x):\n    return len(x) == None\n")
    assert main(["hook", "check", "-x.py", "-h.py", "--json.py"]) == 1
    out = capsys.readouterr().out
    assert all(f"{name}:2" in out for name in ("-x.py", "-h.py", "--json.py"))
    assert main(["hook", "check", "-y.py"]) == 2
    assert "usage: localagent hook check" in capsys.readouterr().err


def test_ctrl_c_while_a_verb_is_loaded_is_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_name: str) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert main(["fix"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "kind", "exit_code"),
    [
        (AnswerIsNo("there is none", remedy="make one"), "no", 1),
        (UsageFault(["a: wrong", "b: wrong"]), "usage", 2),
        (ValueError("oh"), "internal", 3),
        (CannotEnforce("no jail"), "cannot-enforce", 4),
        (Interrupted("enough"), "interrupted", 130),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
@pytest.mark.parametrize("told", ["nothing", "events", "answer"])
def test_who_asked_for_json_reads_json_however_a_verb_ends(
    fault: BaseException,
    kind: str,
    exit_code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(_args: argparse.Namespace, _settings: object, render: Render) -> int:
        if told == "events":
            render.json({"event": "stage", "stage": "snapshot"})
        if told == "answer":
            render.json([])
        raise fault

    monkeypatch.setattr(history, "run", run)
    assert main(["history", "--json"]) == exit_code
    said = capsys.readouterr()
    assert said.err.startswith("localagent: ")
    *before, last = [json.loads(line) for line in said.out.splitlines()]
    if told == "answer":
        assert (before, last) == ([], [])
    else:
        assert len(before) == (told == "events")
        assert (last["error"]["kind"], last["exit"]) == (kind, exit_code)
        assert set(last["error"]) == {"kind", "faults", "remedy"}
    assert main(["history"]) == exit_code
    assert capsys.readouterr().out.count("{") == (told == "events")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_who_asked_for_json_in_a_wrong_way_reads_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    takes_json = " --json " in capsys.readouterr().out
    assert main([verb, "--json", "--no-such-option"]) == 2
    out = capsys.readouterr().out
    assert (json.loads(out)["error"]["kind"] == "usage") if takes_json else (out == "")
