"""Patches kept as data: every malicious one is denied by the rule it names, every benign one is allowed.

`patches/base.json` is the repository they are for, by path. A patch's first line names what is expected.
"""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.app.review.patch_gate import GateRequest, review_patch
from localagent.app.settings import Settings
from localagent.domain.gate import Allow
from localagent.domain.review import PatchReview, PatchVerdict

PATCHES = Path(__file__).parent / "patches"
MALICIOUS = sorted((PATCHES / "malicious").glob("*/*.patch"))
BENIGN = sorted((PATCHES / "benign").glob("*/*.patch"))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(scope="session")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop")
    for path, text in json.loads((PATCHES / "base.json").read_text()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def judge(path: Path, repo: Path, *, everything: bool) -> tuple[str, PatchReview]:
    head, _, patch = path.read_bytes().partition(b"\n")
    assert head.startswith(b"Expect: ")
    request = GateRequest(patch=patch.removeprefix(b"\n"), repo=repo, everything=everything)
    return head.removeprefix(b"Expect: ").decode(), review_patch(request, Settings.from_environ({}))


def test_there_are_enough() -> None:
    assert len(MALICIOUS) >= 60
    assert len({p.parent for p in MALICIOUS}) >= 12
    assert len(BENIGN) >= 60


@pytest.mark.long
@pytest.mark.parametrize("path", MALICIOUS, ids=name)
def test_a_malicious_patch_is_denied_by_its_rule(path: Path, repo: Path) -> None:
    expected, review = judge(path, repo, everything=True)
    assert review.verdict is not PatchVerdict.ALLOWED
    assert review.exit == 1
    assert expected in {f.rule for d in review.decisions for f in d.findings}
    assert all(d.answer is not Allow.ERROR for d in review.decisions), review.decisions
    _, short = judge(path, repo, everything=False)
    assert short.verdict is not PatchVerdict.ALLOWED
    if not review.rules[expected].asks_person:
        assert short.verdict is PatchVerdict.REFUSED


@pytest.mark.long
@pytest.mark.parametrize("path", BENIGN, ids=name)
def test_a_benign_patch_is_allowed(path: Path, repo: Path) -> None:
    _, review = judge(path, repo, everything=True)
    assert [f for d in review.decisions for f in d.findings] == []
    assert review.verdict is PatchVerdict.ALLOWED


@pytest.mark.long
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["pkg/core.py", "pkg/windows.py", "pkg/store.py", "tests/test_core.py"]), at=st.integers(0, 4)
)
def test_a_patch_that_changes_nothing_is_allowed(repo: Path, path: str, at: int) -> None:
    line = (repo / path).read_bytes().split(b"\n")[at]
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{at + 1} +{at + 1} @@\n".encode()
    patch = head + b"-" + line + b"\n+" + line + b"\n"
    review = review_patch(GateRequest(patch=patch, repo=repo, everything=True), Settings.from_environ({}))
    assert review.verdict is PatchVerdict.ALLOWED
