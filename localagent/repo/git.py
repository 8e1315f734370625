"""git, as far as the hook needs it: plumbing only, nothing of the repository's configuration that runs a program.

Neither hooks, filters, textconv, external diffs, file system monitors, pagers nor transports are reached: the user's
and the system's configuration are not read, and what a repository's own could start is overridden. Not promised:
safety against faults of git itself.
"""

import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from localagent.errors import AnswerIsNo, CannotEnforce

SECONDS = 120
PASSED_ON = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_ENVIRON = {
    "PATH": _PATH,
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
}
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=false",
    "diff.external=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "safe.directory=*",
    "user.name=localagent",  # who wrote a note; nothing else of ours is a commit
    "user.email=localagent@localhost",
)
_ARGV = ("git", "--no-pager", *(word for setting in _SETTINGS for word in ("-c", setting)))


class GitSaysNoError(AnswerIsNo):
    """git ended with an error; nothing was changed by this call."""


class Git:
    """git at one folder. `environ` is the caller's: only the places that git tells its own hooks are taken from it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.index_file = environ.get("GIT_INDEX_FILE", "")
        places = {name: str(folder / environ[name]) for name in PASSED_ON if environ.get(name)}
        self._environ = {**_ENVIRON, **places}

    def at(self, folder: Path) -> "Git":
        """The same git at another folder, meaning the same places."""
        return Git(folder, {name: self._environ[name] for name in PASSED_ON if name in self._environ})

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What one git command writes. GitSaysNoError with its first line; CannotEnforce where there is no git."""
        code, out, err = self._ended(arguments, stdin)
        if code:
            told = err.decode(errors="replace").strip().splitlines()[:1] or [f"exit status {code}"]
            raise GitSaysNoError(f"git {arguments[0]} in {self.folder}: {told[0]}", remedy="see what git says there")
        return out

    def read_bounded(self, *arguments: str, most_bytes: int) -> bytes | None:
        """What one git command writes; None, and the command ended, where that is more than so many bytes."""
        try:
            with subprocess.Popen(
                [*_ARGV, *arguments],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process:
                assert process.stdout is not None
                late = threading.Timer(SECONDS, process.kill)
                late.start()
                try:
                    out = process.stdout.read(most_bytes + 1)
                    if len(out) > most_bytes:
                        process.kill()
                finally:
                    late.cancel()
        except FileNotFoundError as error:
            raise CannotEnforce("there is no git in " + _PATH, remedy="install git, or name the files") from error
        if len(out) > most_bytes:
            return None
        if process.returncode:
            raise GitSaysNoError(f"git {arguments[0]} in {self.folder}: exit status {process.returncode}")
        return out

    def asks(self, *arguments: str) -> bytes | None:
        """What a command writes that may have nothing to say; None then."""
        code, out, _ = self._ended(arguments, b"")
        return None if code else out

    def path(self, *arguments: str) -> Path | None:
        """A path that `git rev-parse` answers, absolute."""
        out = self.asks("rev-parse", "--path-format=absolute", *arguments)
        return None if out is None else Path(out.removesuffix(b"\n").decode("utf-8", "surrogateescape"))

    def _ended(self, arguments: Sequence[str], stdin: bytes) -> tuple[int, bytes, bytes]:
        try:
            done = subprocess.run(
                [*_ARGV, *arguments],
                cwd=self.folder,
                env=self._environ,
                input=stdin,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise CannotEnforce("there is no git in " + _PATH, remedy="install git, or name the files") from error
        except subprocess.TimeoutExpired as error:
            raise GitSaysNoError(f"git {arguments[0]} did not end within {SECONDS} s") from error
        return done.returncode, done.stdout, done.stderr
