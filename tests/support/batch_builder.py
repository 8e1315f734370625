"""Fleets for tests: repositories in a user's home, the batch run in processes of its own."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.fix_builder import CHECKOUT, Files, Home, Ran
from support.git_builder import ENVIRON, Repo

HEAD = 'schema = "localagent/fleet/1"\nname = "night"\n[polite]\ndisk = "normal"\n'
EACH = '[each]\nwork = ["failing-tests", "codemods"]\nmodel = false\nmax_candidates = 12\nmax_seconds = 120\n'
EACH += 'policy = "takes.toml"\n'
MISTAKE = "\n\ndef absent(name, names):\n    return not name in names\n"


def asking(confidence: float) -> str:
    """The default policy, with the confidence that it asks for; what comes of few candidates goes by the clock."""
    text = (CHECKOUT / "policies" / "default.toml").read_text()
    assert text.count("\naccept_at = 0.9\n") == 1
    return text.replace("\naccept_at = 0.9\n", f"\naccept_at = {confidence}\n")


@dataclass(frozen=True)
class Batch:
    """A home's fleet."""

    home: Home

    @property
    def folder(self) -> Path:
        return self.home.root / "fleet"

    @property
    def runs(self) -> Path:
        return self.home.root / "state" / "localagent" / "batch" / "runs"

    def add(self, name: str, files: Files) -> Path:
        """A repository as a plain folder."""
        for path, data in files.items():
            place = self.folder / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
        return self.folder / name

    def add_mirror(self, name: str, files: Files) -> Path:
        """A repository as a bare mirror, committed on main."""
        repo = Repo(self.home.root / f"{name}.work")
        for path, data in files.items():
            repo.stage(path, data)
        repo.commit()
        place = self.folder / f"{name}.git"
        subprocess.run(["git", "clone", "-q", "--mirror", repo.folder, place], env=ENVIRON, check=True)
        return place

    def write(self, text: str, *, each: str = EACH) -> Path:
        """The fleet's file."""
        self.folder.mkdir(exist_ok=True)
        place = self.home.root / "fleet.toml"
        (place.parent / "takes.toml").write_text(asking(0.0))
        place.write_text(HEAD + each + text)
        return place

    def write_all(self, *more: str, each: str = EACH) -> Path:
        """The fleet's file with every folder and mirror there is."""
        entries = []
        for path in sorted(self.folder.iterdir()):
            bare = path.suffix == ".git"
            where = f'mirror = "{path}"\nrevision = "main"' if bare else f'path = "{path}"'
            entries.append(f"[[repository]]\n{where}\n")
        return self.write("".join((*entries, *more)), each=each)

    def run(self, *arguments: str) -> Ran:
        """`batch run`, to its end."""
        return self.home.run("batch", "run", *arguments)

    def report(self, *arguments: str) -> dict[str, Any]:
        """The newest run's report."""
        ran = self.home.run("batch", "report", "--json", *arguments)
        assert ran.code in (0, 1), ran
        found: dict[str, Any] = json.loads(ran.out)
        return found


def states(report: dict[str, Any]) -> dict[str, str]:
    """Repository to state."""
    return {row["name"]: row["state"] for row in report["repositories"]}


def workers(home: Home) -> list[int]:
    """The workers of this home that live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"batch_worker" in command and str(home.root).encode() in environ:
            found.append(int(entry.name))
    return found
