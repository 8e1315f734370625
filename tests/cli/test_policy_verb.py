import json
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app import rule_examples
from localagent.app import settings as places
from localagent.cli.main import main
from localagent.gate.rule_catalogue import IN_PATCHES

POLICIES = Path(__file__).parents[2] / "policies"
HEAD = "schema = 'localagent/policy-layer/1'\n"
DANGER = "[[danger.rule]]\nid = 'mine'\nwhy = 'w'\nseverity = 'high'\nnames = ['subprocess']\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "r").mkdir()
    return tmp_path / "r"


def test_show_layers_names_who_decided_what(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "pyproject.toml").write_text("[tool.localagent.size]\nmax_files = 1\nmax_depth = 200\n")
    assert main(["policy", "show", "--layers", "--repo", str(repo)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {
        line.split()[1]: (line.split()[0], line.split()[2:]) for line in lines if line[:1] in "12" and line.split()[1:]
    }
    assert rows["size.max_files"] == ("2", ["1"])
    assert rows["size.max_depth"] == ("1", ["60"])
    assert any("size.max_depth has no effect" in line for line in lines)
    assert main(["policy", "show", "--json", "--repo", str(repo)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["size"]["max_files"] == 1
    decided = {row["key"]: row["layer"] for row in told["decided"]}
    assert decided["size.max_files"].endswith("[tool.localagent]")


def test_check_tells_every_fault_of_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer, project, policy = tmp_path / "a.toml", tmp_path / "pyproject.toml", tmp_path / "p.toml"
    layer.write_text(HEAD + "[size]\nmax_files = 1\n")
    project.write_text("[tool.localagent.size]\nmax_files = 1\n")
    policy.write_text((POLICIES / "strict.toml").read_text())
    files = [str(layer), str(project), str(policy)]
    assert main(["policy", "check", *files]) == 0
    out = capsys.readouterr().out
    assert "a layer that is right" in out
    assert "a right [tool.localagent]" in out
    assert "'strict' is right" in out
    for path in (layer, project, policy):
        path.write_text(path.read_text().replace("max_files = 1", "max_files = 0"))
    assert main(["policy", "check", *files]) == 2
    err = capsys.readouterr().err
    assert err.count("size.max_files: must be an integer") == 3


def test_explain_tells_a_rule_of_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    for rule, said in (("homoglyph-name", "looks like another"), ("run-process", "os.system"), ("no-shell", "bash")):
        assert main(["policy", "explain", rule]) == 0
        out = capsys.readouterr().out
        assert said in out
        assert "Matches:" in out
        assert "Does not match:" in out
    assert main(["policy", "explain", "run-proces"]) == 2
    assert "did you mean run-process" in capsys.readouterr().err


def test_explain_without_a_rule_prints_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# The rules of the gates")
    assert all(f"\n## {rule}\n" in out for rule in ("homoglyph-name", "run-process", "no-shell"))
    assert main(["policy", "explain", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rule"] is None
    assert {"homoglyph-name", "run-process", "no-shell"} <= {one["id"] for one in told["explained"]}


@pytest.fixture
def few_in_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tenth of the rules that are written in code: the gates' own tests try each, and all together take long."""
    for table in ("IN_REPAIRS", "IN_PATCHES"):
        monkeypatch.setattr(rule_examples, table, getattr(rule_examples, table)[::10])


@pytest.mark.long
@pytest.mark.usefixtures("few_in_code")
def test_the_examples_of_the_bundled_policies_hold(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("default", "appliance"):
        assert main(["policy", "test", "--policy", name, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["failed"] == []
        assert told["examples"]["gate"] > 100
        assert told["examples"]["danger"] > 200
        assert told["examples"]["command"] > 10


@pytest.mark.usefixtures("few_in_code")
def test_an_example_that_a_rule_in_code_does_not_see_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = IN_PATCHES[0]
    turned = replace(seen, match=seen.not_match[:1], not_match=seen.match[:1])
    monkeypatch.setattr(rule_examples, "IN_PATCHES", (turned,))
    assert main(["policy", "test", "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert [(one["rule"], one["example"]) for one in failed] == [
        (seen.id, "patch.match[0]"), (seen.id, "patch.not_match[0]"),
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("few_in_code")
def test_an_example_that_its_rule_does_not_see_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (POLICIES / "default.toml").read_text()
    (tmp_path / "p.toml").write_text(f"{text}\n{DANGER}match = ['x = 1']\nnot_match = ['import subprocess']\n")
    assert main(["policy", "test", "--policy", str(tmp_path / "p.toml")]) == 1
    out = capsys.readouterr().out
    assert "mine (danger) match[0]: must fire" in out
    assert "mine (danger) not_match[0]: must not fire" in out


@pytest.mark.parametrize(
    "verb",
    [
        ("gate", "PATCH", "--repo", "REPO"),
        ("fix", "--repo", "REPO", "--no-model"),
        ("deps", "check", "flask", "--repo", "REPO"),
        ("policy", "show", "--repo", "REPO"),
    ],
)
def test_the_repositorys_layer_is_read_by_every_verb(
    verb: tuple[str, ...], repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "pyproject.toml").write_text("[tool.localagent.size]\nmax_files = 'x'\n")
    (tmp_path / "p.patch").write_text("")
    args = [{"REPO": str(repo), "PATCH": str(tmp_path / "p.patch")}.get(word, word) for word in verb]
    assert main(args) == 2
    assert "pyproject.toml:2: tool.localagent.size.max_files" in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb",
    [
        ("gate", "PATCH", "--repo", "REPO"),
        ("fix", "--repo", "REPO", "--no-model"),
        ("deps", "check", "flask"),
        ("jail", "run", "-c", "1"),
        ("policy", "test"),
    ],
)
def test_a_machines_layer_that_cannot_be_believed_stops_every_verb(
    verb: tuple[str, ...],
    repo: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = tmp_path / "etc"
    (system / "policy.d").mkdir(parents=True)
    (system / "policy.d").chmod(0o777)
    system.chmod(0o755)
    monkeypatch.setattr(places, "SYSTEM_DIR", system)
    (tmp_path / "p.patch").write_text("")
    args = [{"REPO": str(repo), "PATCH": str(tmp_path / "p.patch")}.get(word, word) for word in verb]
    assert main(args) == 4
    assert "cannot be believed" in capsys.readouterr().err


def test_a_check_that_the_policy_denies_is_a_usage_fault(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["fix", "--repo", str(repo), "--no-model", "--check", "sh -c true", "--check", "pip install x"]
    assert main(args) == 2
    err = capsys.readouterr().err
    assert "no-shell" in err
    assert "no-installing" in err
