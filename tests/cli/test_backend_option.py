"""`--backend`: the jail that was asked for is the jail that runs, or nothing runs."""

from pathlib import Path

import pytest
from support.fix_builder import ADDED, ADDER, home
from support.jail_backends import KINDS, jail_by

from localagent.cli import main as cli
from localagent.jail.api import BackendKind
from localagent.jail.probe import discovery, selection


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_repository_is_repaired_by_each_backend(kind: BackendKind) -> None:
    jail = jail_by(kind)
    with home(ADDER) as h:
        ran = h.fix("--test", "test_adder.py", "--no-model", "--backend", str(kind), "--apply")
        assert (ran.code, (h.repo / "adder.py").read_bytes().endswith(ADDED)) == (0, True), ran.err
        assert jail.backend in str(ran.report)


@pytest.mark.parametrize("kind", KINDS)
def test_jail_run_says_which_backend_ran(kind: BackendKind, capsys: pytest.CaptureFixture[str]) -> None:
    jail = jail_by(kind)
    assert cli.main(["jail", "run", "--backend", str(kind), "--json", "--", "/bin/sh", "-c", "exit 3"]) == 0 + 3
    assert f'"backend": "{jail.backend}"' in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_a_backend_that_is_not_there_is_exit_4_and_nothing_ran(
    kind: BackendKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = next(one for one in BackendKind if one is not kind)
    monkeypatch.setattr(discovery, "_SOURCES", tuple(one for one in discovery._SOURCES if one.kind is other))
    selection.probed.cache_clear()
    try:
        code = cli.main(["jail", "run", "--backend", str(kind), "--rw", str(tmp_path), "--", "/bin/touch", "mark"])
    finally:
        selection.probed.cache_clear()
    said = capsys.readouterr().err
    assert code == 4
    assert f"no {kind} found" in said
    assert "--backend auto" in said
    assert not list(tmp_path.iterdir())


def test_an_unknown_backend_is_a_usage_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["jail", "run", "--backend", "docker", "--", "true"]) == 2
    assert "docker" in capsys.readouterr().err
