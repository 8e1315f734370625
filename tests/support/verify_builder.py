"""Repositories and patches for `verify`, in real jails: a patch is made of texts before and after."""

import contextlib
import difflib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.app.review.verify_patch import run_verify
from localagent.app.review.verify_run import VerifyRequest
from localagent.app.settings import Settings
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Verification
from localagent.jail.api import open_jail
from localagent.jail.limits.profile import load
from localagent.verify.baseline.collection_plan import OPTIONS
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.differential import Differ
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import OpenRequest
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse
from support.fix_builder import CHECKOUT, Home
from support.house_builder import Silent

CALC = (
    "def clamp(value: int, low: int, high: int) -> int:\n"
    "    if value < low:\n        return low\n    if value > high:\n        return low\n    return value\n"
)
FIXED = CALC.replace("value > high:\n        return low", "value > high:\n        return high")
TESTS = (
    "from calc import clamp\n\n\ndef test_in():\n    assert clamp(5, 0, 10) == 5\n\n\n"
    "def test_low():\n    assert clamp(-5, 0, 10) == 0\n\n\ndef test_high():\n    assert clamp(50, 0, 10) == 10\n"
)
REPO: Mapping[str, str] = {"calc.py": CALC, "test_calc.py": TESTS}


def patch(before: Mapping[str, str], after: Mapping[str, str | None]) -> str:
    """A unified diff from some files to others; None deletes."""
    out = ""
    for name in sorted(after):
        old, new = before.get(name), after[name]
        lines = difflib.unified_diff(
            (old or "").splitlines(keepends=True),
            (new or "").splitlines(keepends=True),
            f"a/{name}" if old is not None else "/dev/null",
            f"b/{name}" if new is not None else "/dev/null",
        )
        mode = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
        text = "".join(lines)
        if text:
            out += f"diff --git a/{name} b/{name}\n{mode}{text}"
    return out


@dataclass(frozen=True, kw_only=True)
class Said:
    """What `verify` answered."""

    code: int
    out: str
    err: str
    told: dict[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.told["verdict"])

    @property
    def reason(self) -> str:
        return str(self.told["reason"])


def verify(home: Home, text: str, *args: str) -> Said:
    """Run the verb on a patch; the report is what `--report` wrote, {} without one."""
    path, report = home.root / "p.patch", home.root / "verify.json"
    path.write_text(text)
    report.unlink(missing_ok=True)
    ran = home.run("verify", str(path), "--repo", str(home.repo), "--report", str(report), *args)
    told = json.loads(report.read_bytes()) if report.exists() else {}
    return Said(code=ran.code, out=ran.out, err=ran.err, told=told)


@contextlib.contextmanager
def scratch_home() -> Iterator[Path]:
    """A folder that a jail's uid can pass."""
    with tempfile.TemporaryDirectory(prefix="la-verify-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def settings_in(root: Path) -> Settings:
    """Settings with every folder below one."""
    return Settings.from_environ({"HOME": str(root), "TMPDIR": str(root)})


def verified(files: Mapping[str, str], text: str, **more: Any) -> Verification:
    """`verify` in this process, on a repository of these files."""
    with scratch_home() as root:
        repo = root / "repo"
        for name, content in files.items():
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            (repo / name).write_text(content)
        (root / "tmp").mkdir(mode=0o711)
        request = VerifyRequest(patch=text.encode(), repo=repo, **more)
        return run_verify(request, settings_in(root / "tmp"), Silent())


@contextlib.contextmanager
def differ(before: Mapping[str, str], after: Mapping[str, str], *, seed: int = 0) -> Iterator[Differ]:
    """Old against new of two trees, without gates and without verdict."""
    with scratch_home() as root:
        limits = {use: load(CHECKOUT / "sandbox" / f"{use.value}.toml").limits for use in WorkerUse}

        def jails(name: str, files: Mapping[str, str]) -> JailPool:
            for path, text in files.items():
                (root / name / path).parent.mkdir(parents=True, exist_ok=True)
                (root / name / path).write_text(text)
            place = WorkerSpec.make(
                jail=open_jail(),
                repo=str(root / "repo"),
                store=root / name,
                scratch=root,
                python=sys.executable,
                limits=limits,
            )
            return JailPool(place)

        files = [
            ChangedFile(path=RepoPath(n), source=RepoPath(n), before=before.get(n, "").encode(), after=t.encode())
            for n, t in after.items()
            if before.get(n) != t and not n.startswith("test_")
        ]
        old, new = jails("old", before), jails("new", after)
        try:
            yield Differ(old, new, OpenRequest(options=OPTIONS), files, seed=seed, home=root / "hypothesis")
        finally:
            for one in (old, new):
                one.cancel()
                one.close()
