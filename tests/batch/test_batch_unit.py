"""The systemd units: what they start exists, and systemd reads them."""

import argparse
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest
from support.fix_builder import CHECKOUT

from localagent.cli.batch import add_arguments

UNITS = CHECKOUT / "systemd"


def service() -> list[str]:
    """The lines of the service that say something."""
    text = (UNITS / "localagent-batch.service").read_text()
    return [line for line in text.splitlines() if line and not line.startswith(("#", "["))]


def test_what_it_starts_is_a_command_of_ours() -> None:
    command = next(line for line in service() if line.startswith("ExecStart=")).partition("=")[2].split()
    assert command[:3] == ["/usr/bin/env", "localagent", "batch"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parsed = parser.parse_args(command[3:])
    assert (parsed.batch_verb, str(parsed.fleet)) == ("run", "/etc/localagent/fleet.toml")


def test_it_has_no_network_and_writes_nowhere_else() -> None:
    lines = service()
    for wanted in ("PrivateNetwork=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "StateDirectory=localagent"):
        assert wanted in lines
    assert not [line for line in lines if line.startswith(("ReadWritePaths", "BindPaths", "RestrictNamespaces"))]


def test_the_timer_is_for_the_service() -> None:
    timer = RawConfigParser()
    timer.read(UNITS / "localagent-batch.timer")
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert "Unit" not in timer["Timer"]  # then it is the service of the same name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_reads_them(tmp_path: Path) -> None:
    for name in ("localagent-batch.service", "localagent-batch.timer"):
        shutil.copy(UNITS / name, tmp_path)
    argv = ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "localagent-batch" in line]
    assert (done.returncode, told) == (0, [])
