"""The tree as the session has changed it, in memory. The user's files are never written, nor read after the start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from localagent.agent.agent_ports import BaseTree
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.text.visible_text import one_line

MOST_FILE_CHARACTERS = 400_000


class ToolFault(Exception):  # noqa: N818 - the tools' own words: what was asked cannot be done
    """Why a call cannot be carried out, and what to do: the model reads it."""


class ToolRefusal(ToolFault):
    """A call that was understood and may not be. `broken`: rules that it would have broken, whoever asked for it.

    `for_person`: nothing but the yes of a person is wanting.
    """

    def __init__(self, reason: str, broken: tuple[str, ...] = (), *, for_person: bool = False) -> None:
        super().__init__(reason)
        self.broken, self.for_person = broken, for_person


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """Files by path: what was written in the session, else as they stood. `writes` tells what was written."""

    base: BaseTree
    _writes: Callable[[], Mapping[RepoPath, str | None]]

    @property
    def writes(self) -> Mapping[RepoPath, str | None]:
        """What differs from the tree at the start; None: gone."""
        return {path: text for path, text in self._writes().items() if text != self.original(path)}

    def paths(self) -> list[RepoPath]:
        """Every file there is, sorted."""
        writes = self._writes()
        return sorted({*self.base.paths, *writes} - {p for p, text in writes.items() if text is None})

    def original(self, path: RepoPath) -> str | None:
        """A file as it stood at the start; None where there was none, or it is no text."""
        data = self.base.read(path)
        return None if data is None else _text(data)

    def get(self, path: RepoPath) -> str | None:
        """A file's text as it is now; None where there is none, or it is no text."""
        writes = self._writes()
        return writes[path] if path in writes else self.original(path)

    def stands(self, path: RepoPath) -> bool:
        """Whether anything is there."""
        writes = self._writes()
        return writes[path] is not None if path in writes else path in self.base.paths or bool(self.base.why_not(path))

    def text(self, name: str) -> tuple[RepoPath, str]:
        """A file that a model names, with its text. ToolFault where it cannot be read."""
        path = self.path(name)
        text = self.get(path)
        if text is not None:
            return path, text
        if why := self.base.why_not(path):
            raise ToolRefusal(f"{path} {why}")
        if self.stands(path):
            raise ToolFault(f"{path} is not UTF-8 text, or is too large")
        raise ToolFault(f"there is no file {one_line(path, 100)}{self._like(path)}")

    def path(self, name: str) -> RepoPath:
        """A path from a model's words. ToolRefusal where it leads out, or into git's own folder."""
        plain = name.strip().removeprefix("./")
        if any(not c.isprintable() for c in plain) or len(plain) > 500:
            raise ToolRefusal("a path holds no control characters and at most 500 characters")
        try:
            path = RepoPath(plain)
        except UsageFault:
            raise ToolRefusal(
                f"{one_line(name, 100)!r} is not a path inside the repository; give one relative to its root"
            ) from None
        if any(part.lower() in (".git", ".hg", ".svn") for part in path.parts):
            raise ToolRefusal("the version control's own folder is neither read nor written")
        return path

    def _like(self, path: RepoPath) -> str:
        same = [p for p in self.paths() if p.name == path.name] or [
            p for p in self.paths() if p.parts[0] == path.parts[0]
        ]
        return f"; files like it: {', '.join(same[:5])}" if same else "; search finds files"


def _text(data: bytes) -> str | None:
    if len(data) > MOST_FILE_CHARACTERS:
        return None
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
