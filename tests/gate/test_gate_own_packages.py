"""A package of the same repository is no stranger; one that the tree does not hold is."""

from pathlib import Path

import pytest

from localagent.app.review.patch_gate import GateRequest, review_patch
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


USES = b"""\
--- a/shop/mod.py
+++ b/shop/mod.py
@@ -1,2 +1,4 @@
+import {0}
 def f(x):
+    {1}
     return x
"""


@pytest.mark.parametrize(
    ("place", "name", "code", "refused"),
    [
        ("aiohttp/__init__.py", "aiohttp.web", "aiohttp.web.Application()", False),
        ("src/celery/app.py", "celery", "celery.Celery()", False),
        ("elsewhere/aiohttp/__init__.py", "aiohttp.web", "aiohttp.web.Application()", True),
        ("aiohttp/__init__.py", "aiohttp", "aiohttp.web.os.system(x)", True),
        ("aiohttp/__init__.py", "requests", "requests.get(x)", True),
        ("socket/__init__.py", "socket", "socket.socket()", True),
        ("subprocess.py", "subprocess", "subprocess.run(x)", True),
    ],
)
def test_a_project_may_use_itself_and_nothing_by_way_of_it(
    tmp_path: Path, place: str, name: str, code: str, *, refused: bool
) -> None:
    for path, text in (("shop/mod.py", "def f(x):\n    return x\n"), (place, "")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    patch = USES.decode().format(name, code).encode()
    review = review_patch(GateRequest(patch=patch, repo=tmp_path, everything=True), Settings.from_environ({}))
    assert (review.verdict is PatchVerdict.REFUSED) is refused


def test_a_package_that_comes_with_the_patch_is_not_the_trees_own(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/mod.py").write_text("def f(x):\n    return x\n")
    new = b"--- /dev/null\n+++ b/requests/__init__.py\n@@ -0,0 +1 @@\n+x = 1\n"
    patch = USES.decode().format("requests", "requests.get(x)").encode() + new
    review = review_patch(GateRequest(patch=patch, repo=tmp_path, everything=True), Settings.from_environ({}))
    assert review.verdict is PatchVerdict.REFUSED
