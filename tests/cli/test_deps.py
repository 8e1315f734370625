"""`localagent deps`: exit codes and output, as a user sees them."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from support.wheel_builder import digest, write_wheel

from localagent.cli import main as entry
from localagent.cli.render import Render
from localagent.jail.limits import profile
from localagent.jail.limits.profile import load as load_profile
from localagent.jail.probe import selection
from localagent.record.audit.verify_chain import check_audit

POLICIES = Path(entry.__file__).parents[2] / "policies"
STRICT = str(POLICIES / "strict.toml")


class Call(Protocol):
    """Runs `localagent deps` with arguments: its exit code, standard output and standard error."""

    def __call__(self, *arguments: str) -> tuple[int, str, str]: ...


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(entry, "Render", lambda: Render(out=out, err=err))
        code = entry.main(["deps", *arguments])
        return code, out.getvalue(), err.getvalue()

    return run


def test_what_may_not_come_in_is_on_the_record(call: Call, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    assert call("check", "numpy", "nunpy==2.0", "./x; rm")[0] == 1
    assert call("install", "--index", str(tmp_path / "wheels"), "numpy")[0] == 1
    entries = check_audit(tmp_path / "state" / "localagent" / "audit").entries
    assert [(e.kind, e.data["what"], e.data["verdict"], e.data["names"], e.data["count"]) for e in entries] == [
        ("refused", "deps", "refused", ["numpy", "nunpy"], 3),
        ("refused", "deps", "unknown", ["numpy"], 1),
    ]


def test_every_name_gets_its_answer_and_the_command_of_a_person(call: Call) -> None:
    code, out, _ = call("check", "numpy>=1", "nunpy==2.0", "./x", "--json")
    assert code == 1
    told = json.loads(out)
    assert told["answer"] == "refused"
    assert [row["answer"] for row in told["requirements"]] == ["unknown", "refused", "refused"]
    assert [row["approve"] for row in told["requirements"]] == [
        "localagent deps approve numpy --reason 'WHY IT IS NEEDED'",
        "localagent deps approve nunpy==2.0 --distinct-from numpy --reason 'WHY IT IS NEEDED'",
        None,
    ]
    code, out, _ = call("check", "numpy")
    assert code == 1
    assert out.splitlines()[0].startswith("unknown  numpy  (the command line): on no list")
    assert "to approve: localagent deps approve numpy" in out


def test_the_printed_command_works_and_can_be_taken_back(call: Call) -> None:
    assert call("check", "frob==1.0")[0] == 1
    assert call("approve", "Frob==1.0", "--reason", "needed")[0] == 0
    code, out, _ = call("check", "frob==1.0")
    assert code == 0
    assert "approved by" in out
    assert call("check", "frob==1.1")[0] == 1
    code, out, _ = call("approvals", "--json")
    assert [(a["name"], a["version"], a["reason"]) for a in json.loads(out)["approvals"]] == [("frob", "1.0", "needed")]
    assert call("approve", "frob", "--withdraw", "--reason", "no longer")[0] == 0
    assert call("check", "frob==1.0")[0] == 1
    assert "no approvals" in call("approvals")[1]


def test_a_wheel_is_approved_by_its_digest(call: Call, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel = write_wheel(index)
    given = ("--reason", "needed", "--hash-from", str(wheel))
    assert call("approve", "frob", *given)[0] == 2
    code, _, err = call("approve", "frob==1.1", *given)
    assert (code, "frob-1.0-py3-none-any.whl is frob==1.0, not frob==1.1" in err) == (1, True)
    assert call("approve", "frob==1.0", "--reason", "x", "--hash-from", "/nowhere.whl")[0] == 1
    assert "no approvals" in call("approvals")[1]
    _, _, err = call("approve", "frob==1.0", "--reason", "needed")
    assert "--hash-from WHEEL" in err
    code, out, _ = call("approve", "frob==1.0", *given)
    assert (code, f"sha256:{digest(wheel)}" in out) == (0, True)
    assert f"sha256:{digest(wheel)}" in call("approvals")[1]


@pytest.mark.long
def test_install_takes_a_wheel_whose_digest_was_approved(call: Call, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel = write_wheel(index)
    call("approve", "frob==1.0", "--reason", "needed")
    code, _, err = call("install", "--index", str(index), "frob==1.0")
    assert (code, "localagent deps approve frob==VERSION --hash-from WHEEL" in err) == (1, True)
    call("approve", "frob==1.0", "--reason", "needed", "--hash-from", str(wheel))
    code, out, err = call("install", "--index", str(index), "frob==1.0")
    assert (code, err) == (0, "")
    assert f"sha256:{digest(wheel)} named by the approval by" in out
    write_wheel(index, files={"frob/__init__.py": b"x = 2\n"})
    assert call("install", "--index", str(index), "frob==1.0")[0] == 1


def test_a_look_alike_is_approved_only_when_told_apart(call: Call) -> None:
    code, _, err = call("approve", "reqeusts", "--reason", "x")
    assert code == 1
    assert "looks like 'requests'" in err
    assert "--distinct-from requests" in err
    assert call("approve", "reqeusts", "--reason", "x", "--distinct-from", "numpy")[0] == 1
    assert call("approve", "reqeusts", "--reason", "x", "--distinct-from", "requests")[0] == 0
    assert call("check", "reqeusts")[0] == 0


def test_a_policy_that_counts_no_approvals_takes_none_and_honours_none(call: Call) -> None:
    assert call("approve", "frob", "--reason", "x")[0] == 0
    code, out, _ = call("check", "frob", "--policy", STRICT)
    assert code == 1
    assert "counts no approvals" in out
    assert "approve frob" not in out
    code, _, err = call("approve", "zork", "--reason", "x", "--policy", STRICT)
    assert code == 1
    assert "`dependencies.allow`" in err


def policy(folder: Path, **rules: str) -> str:
    """A policy of our own beside the known names."""
    text = (POLICIES / "default.toml").read_text()
    for key, value in rules.items():
        text = text.replace(f"\n{key} = []\n", f"\n{key} = {value}\n")
    (folder / "policy.toml").write_text(text)
    (folder / "known-packages.txt").write_text("requests numpy\n")
    return str(folder / "policy.toml")


def test_what_the_policy_denies_no_person_approves(call: Call, tmp_path: Path) -> None:
    own = policy(tmp_path, deny='["frob*"]', allow='["frobnicate", "acme-*"]')
    code, _, err = call("approve", "frobnicate", "--reason", "x", "--policy", own)
    assert code == 1
    assert "denied by the policy ('frob*')" in err
    assert call("check", "acme-x", "--policy", own)[0] == 0
    code, out, _ = call("check", "frobnicate", "--policy", own)
    assert (code, "denied by the policy" in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("check",), "nothing to check"),
        (("check", "x", "--repo", "/nowhere"), "is not a directory"),
        (("check", "-r", "/nowhere"), "cannot be read"),
        (("approve", "x>=1", "--reason", "x"), "NAME==VERSION"),
        (("approve", "x[y]", "--reason", "x"), "NAME==VERSION"),
        (("approve", "./x", "--reason", "x"), "a local path"),
        (("approve", "x", "--reason", " "), "--reason: 1 to 2,000 characters"),
        (("install", "x", "--index", "https://x"), "nothing here reaches a network"),
        (("install", "--index", "/"), "nothing to install"),
        (("install", "x", "--index", "/", "--target", "/"), "something is there"),
    ],
)
def test_usage_faults_say_why(call: Call, arguments: tuple[str, ...], reason: str) -> None:
    code, _, err = call(*arguments)
    assert (code, reason in err) == (2, True), err


def test_a_repository_is_checked_against_its_lock(call: Call, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["frob>=1", "zork"]\n')
    (repo / "requirements.txt").write_text(f"frob==1.0 --hash=sha256:{'a' * 64}\n")
    (repo / "requirements-dev.txt").write_text("zork\n")
    code, out, err = call("check", "--repo", str(repo))
    assert code == 1
    assert "allowed  frob>=1  (pyproject.toml: project.dependencies): locked by requirements.txt at 1.0" in out
    assert "unknown  zork" in out
    assert "not used as a lock: requirements-dev.txt: not a lock: line 1: zork is not pinned" in err


def test_a_repository_without_a_project_table_is_read_in_its_older_files(call: Call, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    assert call("check", "--repo", str(repo))[0] == 2
    (repo / "pyproject.toml").write_text("[tool.ruff]\n")
    (repo / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n  frob>=1  # why\n  file: more.txt\n[options.extras_require]\nx = zork\n"
    )
    (repo / "setup.py").write_text(
        "from setuptools import setup\nTESTS = ['wibblex']\nGROWN = ['a']\nGROWN.append('b')\n"
        "setup(tests_require=TESTS, extras_require={'d': ['grumbex', 'snarfix']}, install_requires=GROWN, **more)\n"
    )
    (repo / "requirements-dev.txt").write_text("nork==1\n-e .\n")
    code, out, _ = call("check", "--repo", str(repo))
    assert code == 1
    assert [" ".join(line.split()[:2]) for line in out.splitlines() if "to approve" not in line] == [
        "unknown frob>=1",
        "refused file:",
        "unknown zork",
        "unknown wibblex",
        "unknown grumbex",
        "unknown snarfix",
        "refused install_requires",
        "refused setup(**...)",
        "unknown nork==1",
        "refused -e",
    ]
    assert "(setup.py:5: install_requires): computed by setup.py, which is not run" in out
    (repo / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["frob"]\n')
    assert "setup.py" not in call("check", "--repo", str(repo))[1]


def test_hostile_names_do_not_drive_a_terminal(call: Call) -> None:
    _, out, _ = call("check", "x\x1b[31m")
    assert "\x1b" not in out
    assert "\\x1b[31m" in out


@pytest.mark.long
def test_install_looks_at_the_names_first_then_installs(call: Call, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel = write_wheel(index, entry_points="[console_scripts]\nfrob = frob:main\n")
    wants = tmp_path / "wants.txt"
    wants.write_text(f"frob==1.0 --hash=sha256:{digest(wheel)}\n")
    target = tmp_path / "target"
    arguments = ("install", "--index", str(index), "-r", str(wants), "--target", str(target))
    code, out, err = call(*arguments)
    assert (code, target.exists()) == (1, False)
    assert "localagent deps approve frob==1.0" in out
    assert "nothing was installed: not every name is allowed" in err
    call("approve", "frob", "--reason", "needed")
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert f"sha256:{digest(wheel)} named by {wants}:1" in out
    assert "entry script, not written: frob = frob:main" in out
    assert (target / "frob" / "__init__.py").read_text() == "x = 1\n"
    code, _, err = call(*arguments)
    assert (code, "something is there" in err) == (2, True)
    code, out, _ = call(*arguments[:-2], "--json")
    told = json.loads(out)
    assert (code, told["target"], told["installed"][0]["sha256"]) == (0, None, digest(wheel))


def test_a_jail_below_the_level_of_policy_or_profile_installs_nothing(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path)
    call("approve", "frob", "--reason", "needed")
    found = selection.find_backend()
    monkeypatch.setattr(selection, "find_backend", lambda *_, **__: replace(found, level="L1"))
    code, _, err = call("install", "frob", "--index", str(tmp_path))
    assert code == 4
    assert "reaches level L1, and L2 is asked for" in err
    monkeypatch.setattr(profile, "load", lambda path: replace(load_profile(path), minimum_level="L3"))
    code, _, err = call("install", "frob", "--index", str(tmp_path))
    assert code == 4
    assert "reaches level L1, and L3 is asked for" in err


def test_a_repository_that_only_conda_describes_is_told_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies:\n  - numpy\n")
    code, _, err = call("check", "--repo", str(tmp_path))
    assert code == 2
    assert "environment.yml is not read: a file of conda's tools" in err
