"""A repository that wants a looser policy, a costly one, or a crash: its layer can only tighten, or is refused."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app.policies import check_file, open_policy
from localagent.app.review.patch_gate import GateRequest, review_changes, review_patch
from localagent.app.settings import Settings
from localagent.domain.review import PatchVerdict
from localagent.errors import UsageFault
from localagent.gate.rule_catalogue import RULES, for_a_person, rule_texts
from localagent.policy.load import load_policy
from localagent.policy.policy_layers import PolicySource, combine

POLICIES = Path(__file__).parents[2] / "policies"
DEFAULT = (POLICIES / "default.toml").read_bytes()
PATCH = "--- a/{0}\n+++ b/{0}\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x\n+    return {1}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(Settings.from_environ(), system_dir=tmp_path / "none")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "r"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/a.py").write_text("def f(x):\n    return x\n")
    return root


@pytest.mark.long
@pytest.mark.parametrize(
    "layer",
    [
        "paths.tests = ['*.py', 'pkg/']\npatches.allowed_in_tests = ['run-text', 'B307', 'write-files', 'run-process']",
        "patches.test_configuration = ['*']\npatches.allowed_in_tests = ['run-text', 'B307', 'write-files']",
        "danger.deny_at = 'high'\ndanger.rule = []",
        "checks.bandit_deny_at = 'high'\npatches.denied = []\npatches.editable = ['*']",
        "[[tool.localagent.danger.rule]]\nid = 'test-framework'\nwhy = 'w'\nseverity = 'high'\n"
        "names = ['builtins.eval', 'builtins.open', 'os']\nmatch = []\nnot_match = []",
        "[[tool.localagent.danger.rule]]\nid = 'run-text'\nwhy = 'w'\nseverity = 'info'\n"
        "names = ['x']\nallowed = ['builtins.eval', 'os', 'subprocess']\nmatch = []\nnot_match = []",
    ],
)
@pytest.mark.parametrize("code", ["eval(x)", "open(x, 'w')", "__import__('os').system(x)"])
def test_no_layer_of_a_repository_lets_harm_pass(repo: Path, settings: Settings, layer: str, code: str) -> None:
    (repo / "pyproject.toml").write_text(f"[tool.localagent]\n{layer}\n")
    patch = PATCH.format("pkg/a.py", code).encode()
    review = review_patch(GateRequest(patch=patch, repo=repo, everything=True), settings)
    assert review.verdict is PatchVerdict.REFUSED
    assert {"run-text", "write-files", "run-process"} & {f.rule for d in review.decisions for f in d.findings}


def test_calling_sources_tests_does_not_let_a_moved_file_keep_what_it_holds(repo: Path, settings: Settings) -> None:
    (repo / "pyproject.toml").write_text("[tool.localagent]\npaths.tests = ['pkg/', 'tests/']\n")
    (repo / "pkg/a.py").write_text("def f(x):\n    return eval(x)\n")
    patch = b"diff --git a/pkg/a.py b/tests/a.py\nsimilarity index 100%\nrename from pkg/a.py\nrename to tests/a.py\n"
    review = review_patch(GateRequest(patch=patch, repo=repo, everything=True), settings)
    assert "run-text" in {f.rule for d in review.decisions for f in d.findings}


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.localagent.paths]\ndenied = ['" + "*a" * 40 + "']", "characters or with more than 3 `*`"),
        ("[tool.localagent.paths]\ndenied = ['" + "a" * 400 + "']", "characters or with more than 3 `*`"),
        ("[tool.localagent.paths]\ndenied = [" + "'a'," * 400 + "]", "more than 300 entries"),
        ("[tool]\nlocalagent = 3", "tool.localagent: must be a table"),
        ("[tool.localagent.base]\nallowed = ['permissive']", "a repository cannot say that"),
        ("[tool.localagent]\nsize" + ".a" * 900 + " = 1", "too deep"),
        ("[tool.localagent]\nx = " + "[" * 5000, "not TOML"),
        ("[tool.localagent.size]\nmax_files = 0x" + "f" * 20000, "so large a number"),
        ("[tool.local\\u0061gent", "not TOML"),
        ("[tool.localagent.dependencies]\nknown_names = 'mine.txt'", "a layer cannot change it"),
        ("[tool.localagent]\nsize" + ".a" * 400_000 + " = 1", "a line with more than 1000 dots"),
        ("localagent" + "x" * (1 << 20), "larger than"),
    ],
)
def test_what_a_repository_may_not_say_is_refused_with_the_reason(text: str, said: str) -> None:
    project = PolicySource(name="pyproject.toml", data=text.encode())
    with pytest.raises(UsageFault, match=r"pyproject\.toml") as caught:
        combine(PolicySource(name="default", data=DEFAULT), (), project, DEFAULT)
    assert said in str(caught.value)


def test_what_cannot_be_read_could_ask_for_more_and_is_refused(repo: Path, settings: Settings) -> None:
    path = repo / "pyproject.toml"
    os.mkfifo(path)
    with pytest.raises(UsageFault, match="not a regular file"):
        open_policy(settings, None, repo)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(UsageFault, match="not a regular file"):
        open_policy(settings, None, repo)


@pytest.mark.long
def test_the_slowest_patterns_that_a_repository_may_give_come_to_an_end(repo: Path, settings: Settings) -> None:
    """Three `*` against the longest name, many times over: what is refused above would take ages."""
    patterns = ", ".join(f"'*a*a*{n}b'" for n in range(100))
    (repo / "pyproject.toml").write_text(f"[tool.localagent.patches]\ndenied = [{patterns}]\n")
    name = "pkg/" + "a" * 240 + ".py"
    (repo / name).write_text("def f(x):\n    return x\n")
    review = review_patch(GateRequest(patch=PATCH.format(name, "-x").encode(), repo=repo), settings)
    assert review.verdict is PatchVerdict.ALLOWED


@pytest.mark.parametrize("name", ["patch-malformed", "secret-token", "path-not-editable"])
def test_no_danger_takes_the_id_of_a_rule_of_the_gates(repo: Path, settings: Settings, name: str) -> None:
    (repo / "pyproject.toml").write_text(
        f"[[tool.localagent.danger.rule]]\nid = '{name}'\nwhy = 'w'\nseverity = 'info'\nasks_person = true\n"
        "names = ['zzzz']\nmatch = []\nnot_match = []\n"
    )
    with pytest.raises(UsageFault, match="is the id of a rule of the gates"):
        open_policy(settings, None, repo)


@pytest.mark.parametrize("name", ["pyproject.toml", "10-house.toml", "whole.toml"])
def test_a_check_tells_an_id_that_is_taken_with_all_other_faults(tmp_path: Path, name: str) -> None:
    """In a repository's layer, in one of the system's, and in a whole policy; with the line."""
    rule = (
        "[[{0}danger.rule]]\nid = 'secret-token'\nwhy = 'w'\nseverity = 'info'\nasks_person = true\n"
        "names = ['zzzz']\nmatch = []\nnot_match = []\n"
    )
    paths = "[{0}paths]\ndenied = ['a/../b']\n"
    whole = (POLICIES / "default.toml").read_text().replace("denied = [\n", "denied = ['a/../b',\n", 1)
    text, index = {
        "pyproject.toml": ((paths + rule).format("tool.localagent."), 0),
        "10-house.toml": ("schema = 'localagent/policy-layer/1'\n" + (paths + rule).format(""), 0),
        "whole.toml": (whole + rule.format(""), whole.count("[[danger.rule]]")),
    }[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageFault) as caught:
        check_file(tmp_path / name)
    line = next(n for n, x in enumerate(text.splitlines(), 1) if x == "id = 'secret-token'")
    assert len(caught.value.faults) == 2
    assert any("has the part `..`" in fault for fault in caught.value.faults)
    taken = next(fault for fault in caught.value.faults if "is the id of a rule of the gates" in fault)
    assert taken.startswith(f"{tmp_path / name}:{line}: ")
    assert f"danger.rule[{index}].id" in taken


def test_a_rule_that_is_firm_stays_firm_whatever_a_danger_says() -> None:
    policy = load_policy(POLICIES / "default.toml")
    before = for_a_person(policy)
    firm = {rule.id for rule in RULES} - before
    mine = tuple(replace(policy.dangers[0], id=name, asks_person=True, why="mine") for name in sorted(firm))
    loosened = replace(policy, dangers=(*policy.dangers, *mine))
    assert for_a_person(loosened) == before
    assert {i: t.why for i, t in rule_texts(loosened).items()} == {i: t.why for i, t in rule_texts(policy).items()}


def test_a_patch_that_could_not_be_read_is_refused(repo: Path, settings: Settings) -> None:
    policy = load_policy(POLICIES / "default.toml")
    mine = replace(policy.dangers[0], id="patch-malformed", asks_person=True)
    patch = PATCH.format("pkg/a.py", "-x").encode() + b"rubbish\n"
    request = GateRequest(patch=patch, repo=repo)
    review, changes = review_changes(request, replace(policy, dangers=(mine,)), settings)
    assert (review.verdict, changes) == (PatchVerdict.REFUSED, ())
