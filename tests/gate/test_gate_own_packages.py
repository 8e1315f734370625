"""A package of the same repository is no stranger; one that the tree does not hold is."""

from pathlib import Path

import pytest

from localagent.app.gating import GateRequest, review_patch
from localagent.app.settings import Settings
from localagent.domain.review import PatchVerdict

PATCH = b"""\
--- a/shop/mod.py
+++ b/shop/mod.py
@@ -1,2 +1,3 @@
+import billing_rules
 def f(x):
     return x
"""


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        ("billing_rules/__init__.py", PatchVerdict.ALLOWED),
        ("src/billing_rules.py", PatchVerdict.ALLOWED),
        ("elsewhere/billing_rules.py", PatchVerdict.NEEDS_PERSON),
    ],
)
def test_a_sibling_package_is_the_trees_own(tmp_path: Path, place: str, verdict: PatchVerdict) -> None:
    for name, text in (("shop/mod.py", "def f(x):\n    return x\n"), (place, "")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    review = review_patch(GateRequest(patch=PATCH, repo=tmp_path), Settings.from_environ({}))
    assert review.verdict is verdict
    rules = {finding.rule for decision in review.decisions for finding in decision.findings}
    assert rules == (set() if verdict is PatchVerdict.ALLOWED else {"import-new"})
