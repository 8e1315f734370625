"""The order of the answers, what a lock must be, and the exact command that a person may give."""

from dataclasses import replace
from pathlib import Path

import pytest

from localagent.deps.dependency_check import DependencyGuard, fits, pinned
from localagent.deps.locks import read_locks
from localagent.deps.requirement import parse_requirement
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import DependencyApproval, DependencyVerdict, Locked, Ruling
from localagent.domain.policy import DependencyRules, Permission

KNOWN = KnownNames(["requests", "numpy"])
DIGEST = "ab" * 32
RULES = DependencyRules(
    allow=("acme-*", "requests"),
    deny=("acme-bad", "left-pad"),
    known_names="known-packages.txt",
    lock_files=("requirements.txt", "locks/*.txt", "pylock.toml", "*.lock"),
    require_hashes=True,
    approvals=Permission.ALLOW,
)
LOCKED = (
    Locked(name="nunpy", version="1.0", hashes=frozenset({DIGEST}), lock="r.txt"),
    Locked(name="left-pad", version="1.0", hashes=frozenset({DIGEST}), lock="r.txt"),
    Locked(name="frobnicate", version="1.0", hashes=frozenset({DIGEST}), lock="r.txt"),
)


def approval(name: str, version: str = "") -> DependencyApproval:
    return DependencyApproval(name=name, version=version, reason="needed", who="me", at="now", policy="p")


def rule(spec: str, guard: DependencyGuard | None = None) -> Ruling:
    return (guard or DependencyGuard(rules=RULES, known=KNOWN, locked=LOCKED)).rule(
        parse_requirement(spec, "here", KNOWN)
    )


@pytest.mark.parametrize(
    ("spec", "answer", "why"),
    [
        ("requests>=2", DependencyVerdict.ALLOWED, "on the policy's list ('requests')"),
        ("Acme_Tools", DependencyVerdict.ALLOWED, "on the policy's list ('acme-*')"),
        ("acme.bad", DependencyVerdict.REFUSED, "denied by the policy ('acme-bad')"),
        ("left-pad==1.0", DependencyVerdict.REFUSED, "denied by the policy"),
        ("frobnicate", DependencyVerdict.ALLOWED, "locked by r.txt at 1.0"),
        ("frobnicate==1.0", DependencyVerdict.ALLOWED, "locked by r.txt at 1.0"),
        ("frobnicate>1", DependencyVerdict.UNKNOWN, "locks 1.0, which is not >1"),
        ("nunpy", DependencyVerdict.REFUSED, "looks like 'numpy': edit distance, 1 edit away although r.txt locks it"),
        ("numpy", DependencyVerdict.UNKNOWN, "on no list"),
        ("./x", DependencyVerdict.REFUSED, "a local path"),
        ("xn--rquests-bya", DependencyVerdict.REFUSED, "looks like 'requests': homoglyphs"),
    ],
)
def test_the_answer_and_its_reason(spec: str, answer: DependencyVerdict, why: str) -> None:
    ruling = rule(spec)
    assert ruling.answer is answer
    assert why in ruling.why


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        ("numpy", "localagent deps approve numpy --reason 'WHY IT IS NEEDED'"),
        ("numpy==1.2", "localagent deps approve numpy==1.2 --reason 'WHY IT IS NEEDED'"),
        ("nunpy", "localagent deps approve nunpy --distinct-from numpy --reason 'WHY IT IS NEEDED'"),
        ("left-pad", ""),
        ("./x", ""),
        ("requests", ""),
    ],
)
def test_the_command_that_approves(spec: str, command: str) -> None:
    assert rule(spec).approve == command


def test_a_named_policy_goes_into_the_command() -> None:
    guard = DependencyGuard(rules=RULES, known=KNOWN, policy_option="my policy.toml")
    assert "--policy 'my policy.toml'" in rule("numpy", guard).approve


def test_an_approval_lets_in_the_version_it_names() -> None:
    guard = DependencyGuard(rules=RULES, known=KNOWN, approvals=(approval("numpy", "1.2"), approval("nunpy")))
    assert rule("numpy==1.2", guard).answer is DependencyVerdict.ALLOWED
    assert "approved by me at now: needed" in rule("numpy==1.2", guard).why
    assert rule("numpy==1.3", guard).answer is DependencyVerdict.UNKNOWN
    assert rule("numpy", guard).answer is DependencyVerdict.UNKNOWN
    assert rule("numpy>=1.2", guard).answer is DependencyVerdict.UNKNOWN
    assert rule("nunpy", guard).answer is DependencyVerdict.ALLOWED


def test_an_approval_outweighs_neither_the_deny_list_nor_a_policy_that_counts_none() -> None:
    guard = DependencyGuard(rules=RULES, known=KNOWN, approvals=(approval("left-pad"), approval("numpy")))
    assert rule("left-pad", guard).answer is DependencyVerdict.REFUSED
    ruling = rule("numpy", replace(guard, rules=replace(RULES, approvals=Permission.DENY)))
    assert (ruling.answer, ruling.approve) == (DependencyVerdict.UNKNOWN, "")
    assert "counts no approvals" in ruling.why


@pytest.mark.parametrize(
    ("specifier", "version"),
    [("==1.0", "1.0"), ("== 1", "1"), ("==1.*", ""), ("===1", ""), (">=1", ""), ("", ""), ("==1,<2", "")],
)
def test_pinned(specifier: str, version: str) -> None:
    assert pinned(specifier) == version


def test_what_cannot_be_read_fits_nothing() -> None:
    assert fits("1.0a1", ">=1.0a0")
    assert not fits("nonsense", "")
    assert not fits("1", "nonsense")


def locks(repo: Path, **files: str) -> tuple[list[str], str]:
    for name, text in files.items():
        (repo / name.replace("_", ".")).write_text(text)
    found = read_locks(repo, RULES.lock_files, KNOWN)
    return [f"{entry.name}=={entry.version} {entry.lock}" for entry in found.entries], " ".join(found.left_out)


def test_a_requirements_lock_is_every_line_pinned_and_hashed(tmp_path: Path) -> None:
    entries, left_out = locks(tmp_path, requirements_txt=f"foo==1 --hash=sha256:{DIGEST}\n")
    assert (entries, left_out) == (["foo==1 requirements.txt"], "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo==1\n", "foo is without a --hash"),
        (f"foo==1 --hash=sha256:{DIGEST}\nbar>=1 --hash=sha256:{DIGEST}\n", "line 2: bar is not pinned by `==`"),
        (f"foo==1.* --hash=sha256:{DIGEST}\n", "not pinned"),
        (f"foo==1 --hash=sha256:{DIGEST}\n-e .\n", "2: an editable requirement"),
        ("", "no pin stands there"),
        ("\x00", "a control character"),
    ],
)
def test_a_file_that_is_not_wholly_a_lock_counts_for_nothing(tmp_path: Path, text: str, reason: str) -> None:
    entries, left_out = locks(tmp_path, requirements_txt=text)
    assert entries == []
    assert reason in left_out


PYLOCK = """
lock-version = "1.0"
created-by = "x"
[[packages]]
name = "foo"
version = "1.0"
[[packages.wheels]]
name = "foo-1.0-py3-none-any.whl"
path = "foo-1.0-py3-none-any.whl"
hashes = {sha256 = "DIGEST"}
[[packages]]
name = "elsewhere"
directory = {path = "."}
[[packages]]
name = "source"
version = "1"
sdist = {path = "source-1.tar.gz", hashes = {sha256 = "DIGEST"}}
"""


def test_a_pylock_counts_for_the_wheels_it_names(tmp_path: Path) -> None:
    entries, left_out = locks(tmp_path, pylock_toml=PYLOCK.replace("DIGEST", DIGEST))
    assert (entries, left_out) == (["foo==1.0 pylock.toml", "elsewhere== pylock.toml", "source==1 pylock.toml"], "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "not a pylock file"),
        ("lock-version = '9.0'", "not a pylock file"),
        (PYLOCK.replace("DIGEST", "short"), "a version or a file without a SHA-256"),
        (PYLOCK.replace("sha256", "md5"), "a version or a file without a SHA-256"),
        ("x = " + "[" * 5000, "not a pylock file"),
    ],
)
def test_a_pylock_that_cannot_be_trusted_counts_for_nothing(tmp_path: Path, text: str, reason: str) -> None:
    entries, left_out = locks(tmp_path, pylock_toml=text)
    assert entries == []
    assert reason in left_out


def test_a_lock_through_a_link_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(f"foo==1 --hash=sha256:{DIGEST}\n")
    (tmp_path / "requirements.txt").symlink_to("real")
    entries, left_out = locks(tmp_path)
    assert entries == []
    assert "cannot be read" in left_out


LOCKS = Path(__file__).parents[1] / "fixtures" / "locks"


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock"])
def test_locks_as_tools_write_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes((LOCKS / name).read_bytes())
    found = read_locks(tmp_path, RULES.lock_files, KNOWN)
    assert (found.files, found.left_out) == ((name,), ())
    index, elsewhere = found.entries
    assert index == Locked(name="frobnicate", version="1.0", hashes=frozenset({"ab" * 32, "cd" * 32}), lock=name)
    assert (elsewhere.name, elsewhere.hashes) == ("shop", frozenset())
    guard = DependencyGuard(rules=RULES, known=KNOWN, locked=found.entries)
    assert rule("frobnicate", guard).answer is DependencyVerdict.ALLOWED
    assert rule("shop", guard).answer is DependencyVerdict.UNKNOWN
    folder = {"uv.lock": ".", "pdm.lock": "./shop"}.get(name)
    told = f"the folder {folder}: no index is to be asked for it" if folder else "elsewhere than an index"
    assert (rule("shop", guard).why, bool(rule("shop", guard).approve)) == (f"{name} takes it from {told}", not folder)


def test_locks_of_earlier_poetry_and_pdm_have_their_files_apart(tmp_path: Path) -> None:
    for name, key in (("poetry.lock", "frob"), ("pdm.lock", "frob 1")):
        files = f'[metadata.files]\n"{key}" = [{{file = "frob-1.whl", hash = "sha256:{DIGEST}"}}]\n'
        (tmp_path / name).write_text(f'[[package]]\nname = "frob"\nversion = "1"\n{files}')
    found = read_locks(tmp_path, RULES.lock_files, KNOWN)
    assert [(one.name, one.hashes) for one in found.entries] == [("frob", frozenset({DIGEST}))] * 2


@pytest.mark.parametrize("name", ["uv.lock", "Pipfile.lock", "pylock.toml", "environment.yml", "pixi.lock"])
def test_a_lock_that_no_pattern_matches_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    found = read_locks(tmp_path, (), KNOWN)
    assert (found.files, len(found.left_out)) == ((), 1)
    assert found.left_out[0].startswith(f"{name}: not read: ")


HOSTILE = {
    "uv.lock": [
        b"", b"\xff\xfe", b"x = " + b"[" * 5000, b"package = 3", b"package = [3]", b"[[package]]\nname = 3",
        b'[[package]]\nname = "a"\nname = "b"', b'[[package]]\nname = "a"\nversion = "1"',
        b'[[package]]\nname = "a"\nversion = "1"\nwheels = [3]',
        b'[[package]]\nname = "a"\nversion = "1"\nwheels = [{hash = "md5:0"}]',
        b"[[package]]\n" * 20_001,
    ],
    "Pipfile.lock": [
        b"", b"[]", b"{}", b"\xff", b"[" * 5000, b'{"_meta": {}, "_meta": {}}',
        b'{"_meta": {}, "default": {"a": 3}}', b'{"_meta": {}, "default": {"a": {"version": "*", "hashes": []}}}',
        b'{"_meta": {}, "default": {"a": {"version": "==1", "hashes": "sha256:0"}}}',
        b'{"_meta": {}, "default": {"a": {"version": 1}}}',
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, each in HOSTILE.items() for data in each])
def test_a_hostile_lock_counts_for_nothing(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    found = read_locks(tmp_path, RULES.lock_files, KNOWN)
    assert (found.entries, len(found.left_out)) == ((), 1)
    assert found.left_out[0].startswith(f"{name}: ")
