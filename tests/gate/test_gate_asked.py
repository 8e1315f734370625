"""What only asks, compares, or copies as before is no new danger; each beside what looks like it and is one."""

import pytest

from localagent.app.settings import Settings
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

HEAD = "import shutil\nimport subprocess\nimport azure.identity as identity\nfrom pytest import Mark\n\n\n"
REFUSES = {"network", "write-files", "bandit", "test-framework", "run-process"}


@pytest.fixture(scope="module")
def gates() -> PatchGates:
    return PatchGates(load_policy(Settings.from_environ().policies_dir / "default.toml"))


def rules(gates: PatchGates, before: str, after: str) -> set[str]:
    path = RepoPath("pkg/mod.py")
    entry = TreeChange(
        path=path, source=path, kind=ChangeKind.MODIFIED, before=before.encode(), after=after.encode(),
        before_mode=FileMode.REGULAR, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    decisions = gates.review((entry,), everything=True)
    return {f.rule for d in decisions for f in d.findings} & REFUSES


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return x if isinstance(x, identity.Credential) else 0", set()),
        ("return x if isinstance(x, (int, identity.Credential)) else 0", set()),
        ("return x if identity.Credential is not None else 0", set()),
        ("return identity.Credential(x)", {"network"}),
        ("return identity.Credential", {"network"}),
        ("return x if identity.Credential() is not None else 0", {"network"}),
        ("return isinstance(identity.Credential(x), int)", {"network"}),
        ("return x if isinstance(x, Mark) else 0", {"test-framework"}),
        ("return x if isinstance(x, subprocess.Popen) else 0", {"run-process"}),
        ("return x in {'0.0.0.0', '::'}", set()),
        ("return g('0.0.0.0' if x == '0.0.0.0' else x)", {"bandit"}),
    ],
)
def test_what_only_asks_reaches_nobody(gates: PatchGates, line: str, found: set[str]) -> None:
    assert rules(gates, HEAD + "def f(x):\n    return x\n", HEAD + f"def f(x):\n    {line}\n") == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("shutil.copy2(a, b)", set()),
        ("shutil.copyfile(a, b) if a else shutil.copy(a, b)", set()),
        ("shutil.copy2(a, c)", {"write-files"}),
        ("shutil.copy2(a, b, follow_symlinks=False)", {"write-files"}),
        ("shutil.copytree(a, b)", {"write-files"}),
        ("shutil.move(a, b)", {"write-files"}),
        ("c = shutil.copy2; c(a, b)", {"write-files"}),
    ],
)
def test_a_copy_from_and_to_the_same_places_is_none_anew(gates: PatchGates, line: str, found: set[str]) -> None:
    before = HEAD + "def f(a, b, c):\n    shutil.copyfile(a, b)\n    return a\n"
    assert rules(gates, before, before.replace("shutil.copyfile(a, b)", line)) == found


CALL = "isinstance(x, identity.Credential)"


@pytest.mark.parametrize(
    ("around", "body"),
    [
        ("def isinstance(a, k):\n    return k(a)\n\n\n", CALL),
        ("for isinstance in g():\n    pass\n\n\n", CALL),
        ("class A:\n    def isinstance(a, k):\n        return k(a)\n\n\n", CALL),
        ("from pkg.own import *\n\n\n", CALL),
        ("globals()['isinstance'] = g\n\n\n", CALL),
        ("\uff49sinstance = g\n\n\n", CALL),
        ("", f"for isinstance in [g]:\n        {CALL}"),
        ("", f"h = lambda isinstance: {CALL}"),
        ("", f"match g:\n        case isinstance:\n            {CALL}"),
        ("", f"from pkg.own import isinstance\n    {CALL}"),
        ("", f"g.{CALL}"),
    ],
)
def test_who_asks_must_be_pythons_own_function(gates: PatchGates, around: str, body: str) -> None:
    before = HEAD + around + "def f(x):\n    return x\n"
    assert "network" in rules(gates, before, before.replace("return x\n", f"{body}\n    return x\n"))
