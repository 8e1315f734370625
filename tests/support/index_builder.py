"""Indexes of small repositories, their state beside them."""

from dataclasses import replace
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.repository_index import RepositoryIndex, open_index


def settings_in(folder: Path) -> Settings:
    """Settings whose state lies in a folder."""
    return replace(Settings.from_environ(), state_dir=folder / "state")


def index_of(root: Path, folder: Path) -> RepositoryIndex:
    """The index of a tree, up to date."""
    return open_index(root, settings_in(folder))


def answers(index: RepositoryIndex, *queries: str) -> list[object]:
    """Everything that a reader of the index sees: files, facts, hits with their scores."""
    found: list[object] = [index.files(), [(path, digest) for path, digest, _ in index.facts()]]
    return found + [index.search(query, limit=50) for query in queries]
