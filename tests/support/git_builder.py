"""Real git repositories for tests, made with a configuration of their own."""

import os
import subprocess
from pathlib import Path

ENVIRON = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_EDITOR": "true",
}


class Repo:
    """A git repository in a folder."""

    def __init__(self, folder: Path, *, init: bool = True) -> None:
        self.folder = folder
        if init:
            folder.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, check: bool = True, stdin: bytes = b"") -> bytes:
        """What git writes; fails the test if git does."""
        env = {**ENVIRON, "XDG_STATE_HOME": f"{self.folder}.state"}  # of a hook of ours that git runs
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=env, input=stdin, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def write(self, name: str, data: bytes | str) -> Path:
        """A file of the working tree."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def stage(self, name: str, data: bytes | str) -> Path:
        """A file of the working tree, staged."""
        path = self.write(name, data)
        self.git("add", "--", name)
        return path

    def commit(self, message: str = "m") -> None:
        """Commit what is staged, without hooks."""
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message)

    def staged(self, name: str) -> bytes:
        """A file's staged bytes."""
        return self.git("show", f":{name}")

    def read(self, name: str) -> bytes:
        """A file's bytes in the working tree."""
        return (self.folder / name).read_bytes()


def armed(repo: Repo, mark: Path) -> None:
    """Everything of a repository's configuration that git may start; each leaves the mark outside."""
    touch = f"touch {mark}"
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "core.editor", "gpg.program"):
        repo.git("config", name, touch)
    repo.git("config", "filter.evil.smudge", touch)
    repo.git("config", "filter.evil.clean", touch)
    repo.git("config", "filter.evil.process", touch)
    repo.git("config", "diff.evil.textconv", touch)
    repo.git("config", "diff.evil.command", touch)
    repo.git("config", "log.showSignature", "true")
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        path = repo.folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{touch}\n")
        path.chmod(0o755)
