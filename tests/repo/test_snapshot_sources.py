"""The sources of a snapshot are what may be repaired, and are what was copied."""

from pathlib import Path

import pytest

from localagent.domain.paths import RepoPath
from localagent.errors import InternalFault
from localagent.repo import source_map as sources_module
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name, data in {
        "pkg/mod.py": b"x = 1\r\n",
        "tests/test_mod.py": b"pass\n",
        "out/made.py": b"made = 1\n",
        "out/keep.py": b"keep = 1\n",
        ".gitignore": b"out/*\n!keep.py\n",
        "run": b"#!/bin/sh\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_sources_are_what_may_be_repaired(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "large.py").write_bytes(b"#" * (2 << 20) + b"\n")
    (repo / "link.py").symlink_to("pkg/mod.py")
    sources = SourceMap(take_snapshot(repo, tmp_path / "store"))
    assert set(sources) == {"pkg/mod.py", "tests/test_mod.py", "out/keep.py"}
    assert sources[RepoPath("pkg/mod.py")] == b"x = 1\r\n"
    assert RepoPath("large.py") not in sources
    with pytest.raises(KeyError):
        sources[RepoPath("large.py")]
    monkeypatch.setattr(sources_module, "_CACHED_BYTES", 8)
    assert [sources[p] for p in sources] == [sources[p] for p in sources]


def test_altered_store_is_noticed(repo: Path, tmp_path: Path) -> None:
    snap = take_snapshot(repo, tmp_path / "store")
    (tmp_path / "store/pkg/mod.py").write_bytes(b"x = 2\r\n")
    with pytest.raises(InternalFault, match="altered"):
        SourceMap(snap)[RepoPath("pkg/mod.py")]
