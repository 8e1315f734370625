"""Repository paths: the one type for a file of the user's tree."""

from localagent.errors import UsageFault


class RepoPath(str):
    """A POSIX path relative to the repository's root that stays inside it.

    Bytes that are not UTF-8 are carried as surrogate escapes. Raises UsageFault for absolute paths, empty
    components, `.`, `..` and NUL. Says nothing about links: whoever opens it uses O_NOFOLLOW per component.
    """

    __slots__ = ()

    def __new__(cls, value: str) -> "RepoPath":
        """Checks and makes one; UsageFault says what is wrong."""
        parts = value.split("/")
        if not value or "\0" in value or any(p in ("", ".", "..") for p in parts):
            raise UsageFault(f"not a path inside the repository: {value!r}")
        return super().__new__(cls, value)

    @property
    def parts(self) -> tuple[str, ...]:
        """The components, root first."""
        return tuple(self.split("/"))

    @property
    def name(self) -> str:
        """The last component."""
        return self.rsplit("/", 1)[-1]

    @property
    def hidden_module(self) -> "RepoPath | None":
        """The module `x.py` that no import finds where this is the `x/__init__.py` beside it; None for other files."""
        folder, _, name = self.rpartition("/")
        return RepoPath(f"{folder}.py") if folder and name == "__init__.py" else None

    @property
    def is_python(self) -> bool:
        """True for `.py` and `.pyi` names."""
        return self.endswith((".py", ".pyi"))
