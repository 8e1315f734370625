"""Lays out the tree a fact speaks of, and the environment its tests need.

Only `environment` reaches the package index, with pinned wheels, and nothing of the project runs: the editable install
that a developer would have is written by hand (a `.pth` file and metadata), so no build backend is called.
Not promised: console scripts or compiled parts of the project under repair.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.real.facts import Fact

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class LayoutError(Exception):
    """A clone, commit or package is missing."""


def git(clone: Path, *args: str, index: Path | None = None) -> bytes:
    """Output of git in a clone, with the user's and the system's configuration out of the way."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "HOME": "/nonexistent",
    }
    if index is not None:
        env["GIT_INDEX_FILE"] = str(index)
    safe = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
    done = subprocess.run(["git", *safe, "-C", str(clone), *args], env=env, capture_output=True, check=False)
    if done.returncode:
        raise LayoutError(f"git {args[0]} in {clone}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def clone_of(fact: Fact, repos: Path) -> Path:
    """The user's clone: `DIR/name`, `DIR/name.git` or `DIR/owner/name`."""
    for candidate in (repos / fact.project, repos / f"{fact.project}.git", repos / fact.repository):
        if candidate.is_dir():
            return candidate.resolve()
    raise LayoutError(f"no clone of {fact.repository} in {repos}; git clone it there with its history")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueFix:
    """What people changed: path -> (lines of the parent they touched, whole file after). Tests left out."""

    lines: dict[str, frozenset[int]]
    after: dict[str, bytes]


def true_fix(fact: Fact, clone: Path) -> TrueFix:
    """Changed source lines, counted in the parent; an insertion counts as the two lines around it."""
    names = git(clone, "diff", "--name-only", "-z", "--no-renames", fact.parent, fact.fix).decode(
        "utf-8", "surrogateescape"
    )
    lines: dict[str, frozenset[int]] = {}
    after: dict[str, bytes] = {}
    for path in names.split("\0"):
        if not path.endswith(".py") or path in fact.test_files:
            continue
        touched: set[int] = set()
        for line in git(
            clone, "diff", "-U0", "--no-ext-diff", "--no-textconv", fact.parent, fact.fix, "--", path
        ).split(b"\n"):
            if found := _HUNK.match(line):
                first, count = int(found[1]), int(found[2] or b"1")
                touched |= set(range(first, first + count)) if count else {max(first, 1), first + 1}
        lines[path] = frozenset(touched)
        after[path] = git(clone, "show", f"{fact.fix}:{path}")
    return TrueFix(lines=lines, after=after)


def lay_out(fact: Fact, clone: Path, target: Path) -> None:
    """The parent commit, the fix's test files and the generated files over it, in a repository of its own."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    index = target.with_name(target.name + ".index")
    index.unlink(missing_ok=True)
    git(clone, f"--work-tree={target}", "read-tree", fact.parent, index=index)
    git(clone, f"--work-tree={target}", "checkout-index", "--all", f"--prefix={target}/", index=index)
    index.unlink()
    for path in fact.test_files:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(git(clone, "show", f"{fact.fix}:{path}"))
    git(target, "init", "--quiet")
    git(target, "add", "--all")
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
    git(target, *who, "commit", "--quiet", "--no-verify", "-m", "parent of the fix, with the tests of the fix")
    for path, text in fact.generated.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def apply_true_fix(fix: TrueFix, target: Path) -> None:
    """Turns a laid-out parent into the fixed tree."""
    for path, data in fix.after.items():
        (target / path).write_bytes(data)


def environment(fact: Fact, venvs: Path, tree: Path) -> Path:
    """The interpreter of a virtual environment with the pinned requirements and the tree installed editable."""
    key = hashlib.sha256(
        "\n".join((sys.version, str(tree), fact.version, fact.entry_points, *fact.requires)).encode()
    ).hexdigest()[:12]
    home = venvs / f"{fact.name}-{key}"
    python = home / "bin" / "python"
    if (home / "complete").is_file():
        return python
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--only-binary=:all:",
            "--no-deps",
            "--disable-pip-version-check",
            *fact.requires,
        ]
    )
    if _installed(home, fact.distribution):
        _run([sys.executable, "-m", "pip", "--python", str(python), "uninstall", "--quiet", "--yes", fact.distribution])
    _write_editable(fact, _site(home), tree)
    (home / "complete").write_text("", encoding="utf-8")
    return python


def _site(home: Path) -> Path:
    return home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _installed(home: Path, distribution: str) -> bool:
    return any(_plain(p.name.split("-")[0]) == _plain(distribution) for p in _site(home).glob("*.dist-info"))


def _write_editable(fact: Fact, site: Path, tree: Path) -> None:
    plain = _plain(fact.distribution)
    (site / f"__editable__.{plain}.pth").write_text(f"{(tree / fact.import_root).resolve()}\n", encoding="utf-8")
    info = site / f"{plain}-{fact.version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {fact.distribution}\nVersion: {fact.version}\n", encoding="utf-8"
    )
    if fact.entry_points:
        (info / "entry_points.txt").write_text(fact.entry_points, encoding="utf-8")
    (info / "INSTALLER").write_text("bench\n", encoding="utf-8")
    (info / "RECORD").write_text("", encoding="utf-8")


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LayoutError(f"{' '.join(argv[1:6])} …: {(done.stderr or done.stdout).strip()[-600:]}")
