"""Files that decide much and are no Python: a person may let them in where the policy lists them, nobody elsewhere."""

from pathlib import Path

import pytest

from localagent.app.review.patch_gate import GateRequest, review_patch
from localagent.app.settings import Settings
from localagent.domain.review import PatchVerdict

ASKED, REFUSED = PatchVerdict.NEEDS_PERSON, PatchVerdict.REFUSED


@pytest.mark.parametrize(
    ("path", "policy", "verdict"),
    [
        ("migrations/0001.sql", "default", ASKED),
        ("app/migrations/x.sql", "default", ASKED),
        ("app/migrations/2026/x.sql", "default", ASKED),
        ("app/migrations/x.sql", "permissive", ASKED),
        ("src/constraints/union.py", "strict", PatchVerdict.ALLOWED),
        ("src/requirements.py", "default", PatchVerdict.ALLOWED),
        ("requirements/dev.txt", "default", ASKED),
        ("app/migrations/x.sql", "strict", REFUSED),
        ("app/migrations/x.sql", "appliance", REFUSED),
        ("app/queries/x.sql", "default", REFUSED),
        ("deploy/k8s/pod.yaml", "default", REFUSED),
        (".github/workflows/ci.yml", "default", ASKED),
        ("pkg/.github/workflows/ci.yml", "default", REFUSED),
    ],
)
def test_who_may_let_a_file_in(tmp_path: Path, path: str, policy: str, verdict: PatchVerdict) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("a\nb\n")
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n".encode()
    request = GateRequest(patch=patch, repo=tmp_path, policy=Path(policy), everything=True)
    review = review_patch(request, Settings.from_environ({}))
    assert review.verdict is verdict
    rules = {finding.rule for decision in review.decisions for finding in decision.findings}
    assert ("path-not-editable" in rules) is (verdict is REFUSED)


def test_a_policy_of_ones_own_makes_them_a_matter_for_a_person(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "policies" / "default.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace('"*.sh", "**/migrations/**/*.sql"', '"*.sh", "k8s/*.yaml"'))
    (tmp_path / "known-packages.txt").write_text("")
    (tmp_path / "r/k8s").mkdir(parents=True)
    (tmp_path / "r/k8s/pod.yaml").write_text("a\nb\n")
    patch = b"--- a/k8s/pod.yaml\n+++ b/k8s/pod.yaml\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    request = GateRequest(patch=patch, repo=tmp_path / "r", policy=tmp_path / "p.toml", everything=True)
    assert review_patch(request, Settings.from_environ({})).verdict is ASKED
