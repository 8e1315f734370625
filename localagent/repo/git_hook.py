"""A repository's own pre-commit hook: put in place and taken away exactly, without the pre-commit framework.

Never overwrites what somebody else put there and never follows a link; asked to, it keeps the other hook beside ours
under a name of ours and runs it first. Not promised: hooks of other kinds, and folders of hooks that several
repositories share (`core.hooksPath`): there the line to add is said, and nothing is written.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.repo.git import Git

NAME = "pre-commit"
CHAINED = "pre-commit.before-localagent"
_MARK = "# Written by `localagent hook install`; `localagent hook uninstall` takes it away."
_MOST = 65_536


def script(command: Sequence[str]) -> bytes:
    """The hook's text: the other hook first if one is kept, then the command."""
    words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
    return (
        f"#!/bin/sh\n{_MARK}\n"
        f'before="$(dirname -- "$0")/{CHAINED}"\n'
        'if [ -x "$before" ]; then "$before" "$@" || exit $?; fi\n'
        f"exec {words}\n"
    ).encode("utf-8", "surrogateescape")


def install(git: Git, environ: Mapping[str, str], command: Sequence[str], *, chain: bool = False) -> Path:
    """Put the hook in place; its path. AnswerIsNo when another stands there, unless it is to be chained."""
    folder = _folder(git, environ)
    with _opened(folder) as hooks:
        present = _present(hooks)
        if present is not None and not _ours(present):
            if not chain:
                raise AnswerIsNo(
                    f"{folder / NAME} is not ours", remedy=f"`--chain` keeps it as {CHAINED} and runs it first"
                )
            if _stands(hooks, CHAINED):
                raise AnswerIsNo(f"{folder / CHAINED} is in the way", remedy="move it away")
            os.rename(NAME, CHAINED, src_dir_fd=hooks, dst_dir_fd=hooks)
        openat.replace_file(NAME, script(command), hooks, mode=0o755)
    return folder / NAME


def uninstall(git: Git, environ: Mapping[str, str]) -> Path:
    """Take our hook away and put a chained one back under its name; its path. AnswerIsNo when it is not ours."""
    folder = _folder(git, environ)
    with _opened(folder) as hooks:
        present = _present(hooks)
        if present is None:
            raise AnswerIsNo(f"there is no {folder / NAME}", remedy="nothing is to be done")
        if not _ours(present):
            raise AnswerIsNo(f"{folder / NAME} is not ours, or was changed", remedy="edit it by hand")
        if _stands(hooks, CHAINED):
            os.rename(CHAINED, NAME, src_dir_fd=hooks, dst_dir_fd=hooks)
        else:
            os.unlink(NAME, dir_fd=hooks)
    return folder / NAME


def _folder(git: Git, environ: Mapping[str, str]) -> Path:
    """The repository's own folder of hooks. AnswerIsNo where git looks elsewhere."""
    common = git.path("--git-common-dir")
    if common is None:
        raise AnswerIsNo(f"{git.folder} is in no git repository", remedy="run it inside one")
    elsewhere = _hooks_path(git, environ)
    own = common / "hooks"
    if elsewhere and os.path.realpath(git.folder / elsewhere) != os.path.realpath(own):
        raise AnswerIsNo(
            f"git looks for hooks in {elsewhere} (core.hooksPath), which is not this repository's own",
            remedy="add `localagent hook check --staged` to the pre-commit hook there",
        )
    return own


def _hooks_path(git: Git, environ: Mapping[str, str]) -> str:
    """`core.hooksPath` as the user's git sees it: reading a setting starts nothing."""
    argv = ("git", "--no-pager", "config", "--type=path", "--get", "core.hooksPath")
    kept = {k: v for k, v in environ.items() if k in ("HOME", "XDG_CONFIG_HOME", "PATH") or k.startswith("GIT_CONFIG")}
    done = subprocess.run(argv, cwd=git.folder, env=kept, capture_output=True, timeout=60, check=False)
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    with openat.root_directory(folder.parent) as above:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder.name, 0o755, dir_fd=above)
        try:
            hooks = openat.open_directory(folder.name, above)
        except OSError as error:
            raise AnswerIsNo(
                f"{folder} is no folder of its own: {error.strerror}", remedy="look at what it is"
            ) from error
        try:
            yield hooks
        finally:
            os.close(hooks)


def _stands(hooks: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=hooks, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _present(hooks: int) -> bytes | None:
    """What stands there; None for nothing, empty bytes for what is no plain file of a hook's size."""
    if not _stands(hooks, NAME):
        return None
    try:
        return openat.read_regular(NAME, hooks, _MOST)[0]
    except OSError:
        return b""  # a link, or far too large: not ours in any case


def _ours(text: bytes) -> bool:
    """Exactly the form that we write, whatever command it runs."""
    lines = text.split(b"\n")
    return (
        len(lines) == 6 and lines[4].startswith(b"exec '") and lines[:4] == script(()).split(b"\n")[:4] and not lines[5]
    )
