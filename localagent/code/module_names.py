"""Which dotted names the Python files of a repository may have, and which file an import means.

By their places alone: from the root, and from each folder above that is no package (`src/`, `tests/`), so that several
packages may lie in one repository. Limitations: what a build renames, editable installs and `sys.path` are not seen.
"""

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cached_property

from localagent.domain.paths import RepoPath

ModuleName = tuple[str, ...]
_SUFFIXES = (".py", ".pyi")


def module_names(sources: Collection[RepoPath]) -> Mapping[ModuleName, list[RepoPath]]:
    """Files by the dotted names that they may have: from the root, and from each folder above that is no package."""
    found: defaultdict[ModuleName, list[RepoPath]] = defaultdict(list)
    packages = {path.parts[:-1] for path in sources if path.name.partition(".")[0] == "__init__"}
    for path in sorted(sources):
        name = own_name(path)
        for top in range(len(name)):
            if not top or name[:top] not in packages:
                found[name[top:]].append(path)
    return found


def own_name(path: RepoPath) -> ModuleName:
    """A file's dotted name from the repository's root; empty for an `__init__.py` there."""
    name = (*path.parts[:-1], path.name.removesuffix(".pyi").removesuffix(".py"))
    return name[:-1] if name[-1] == "__init__" else name


class ModuleTable:
    """Which file of a repository a dotted name means where it is imported. A folder without `__init__` ends in `/`."""

    def __init__(self, paths: Collection[RepoPath]) -> None:
        self._paths = frozenset(paths)

    @cached_property
    def _names(self) -> Mapping[ModuleName, list[RepoPath]]:
        return module_names(self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset("/".join(p.parts[:end]) for p in self._paths for end in range(1, len(p.parts)))

    @cached_property
    def _namespaces(self) -> Mapping[ModuleName, list[str]]:
        found: defaultdict[ModuleName, list[str]] = defaultdict(list)
        for folder in sorted(self._folders):
            parts = tuple(folder.split("/"))
            for top in range(len(parts)):
                found[parts[top:]].append(folder + "/")
        return found

    def resolve(self, dotted: str, importer: RepoPath) -> str | None:
        """The file or namespace folder that a name with its leading dots means in a file; None outside the repository.

        Where several may be meant it is the one nearest to the importer, and a `.py` before a `.pyi`.
        """
        if dotted.startswith("."):
            return self._relative(dotted, importer)
        name = tuple(dotted.split("."))
        found: list[str] = [p for p in self._names.get(name, ()) if self._is_meant(p, name)]
        if not found and name[0] not in sys.stdlib_module_names:
            found = [f for f in self._namespaces.get(name, ()) if self._in_reach(f, name)]
        return min(found, key=lambda p: _distance(p, importer), default=None)

    def submodule(self, module: str, name: str) -> str | None:
        """The file or namespace folder of a module inside a package."""
        if module.endswith("/"):
            folder = module[:-1]
        elif module.rsplit("/", 1)[-1].partition(".")[0] == "__init__":
            folder = module.rpartition("/")[0]
        else:
            return None
        return self._below(folder, (name,))

    def _relative(self, dotted: str, importer: RepoPath) -> str | None:
        rest = dotted.lstrip(".")
        folders = importer.parts[:-1]
        up = len(dotted) - len(rest) - 1
        if up > len(folders):
            return None
        return self._below("/".join(folders[: len(folders) - up]), tuple(rest.split(".")) if rest else ())

    def _below(self, folder: str, name: ModuleName) -> str | None:
        path = "/".join((folder, *name) if folder else name)
        for suffix in _SUFFIXES:
            package = f"{path}/__init__{suffix}" if path else f"__init__{suffix}"
            for file in (package, path + suffix):
                if file in self._paths:
                    return file
        return path + "/" if path in self._folders else None

    @staticmethod
    def _is_meant(path: RepoPath, name: ModuleName) -> bool:
        """A file that is named like a standard module is meant where it lies at the top only."""
        if name[0] not in sys.stdlib_module_names:
            return True
        return own_name(path)[: -len(name)] in ((), ("src",), ("Lib",))

    @staticmethod
    def _in_reach(folder: str, name: ModuleName) -> bool:
        return len(folder.split("/")) - 1 - len(name) <= 1


def _distance(path: str, importer: RepoPath) -> tuple[int, bool, int, str]:
    parts = path.split("/")
    shared = 0
    for one, other in zip(parts[:-1], importer.parts[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return -shared, path.endswith(".pyi"), len(parts), path
