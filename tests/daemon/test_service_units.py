"""The files of systemd/: the settings load, the units say what docs/security.md says they say."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from localagent.daemon.processes.configuration import load_configuration

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def unit(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (ROOT / "systemd" / name).read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def test_the_settings_load_as_they_come() -> None:
    assert load_configuration(ROOT / "systemd" / "daemon.toml").grants == ()


def test_the_page_knows_every_open_item() -> None:
    """What the page says is missing is missing, and what it says is there is there."""
    service = unit("localagent.service")
    section = PAGE.split("### The unit\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    for cell in rows:
        for words in re.findall(r"`([^`]+)`", cell):
            name = words.split("=")[0]
            if not re.fullmatch(r"[A-Z][A-Za-z]+", name):
                continue
            if cell.strip().startswith("no ") and name != "Delegate":
                assert name not in service, name
            else:
                assert name in service, name
                if "=" in words:
                    assert any(value.startswith(words.split("=", 1)[1]) for value in service[name]), words


def test_the_socket_is_for_its_group() -> None:
    socket = unit("localagent.socket")
    assert (socket["SocketMode"], socket["SocketGroup"], socket["Accept"]) == (["0660"], ["localagent"], ["no"])
    assert socket["ListenStream"] == ["/run/localagent/daemon.sock"]


def test_the_recorder_is_another_user_s_and_only_the_daemon_s_group_reaches_it() -> None:
    socket, recorder, daemon = map(
        unit, ("localagent-recorder.socket", "localagent-recorder.service", "localagent.service")
    )
    assert (socket["SocketMode"], socket["SocketGroup"]) == (["0660"], ["localagent"])
    assert recorder["User"] != daemon["User"]
    assert recorder["StateDirectoryMode"] == ["0700"]
    assert f"--user {daemon['User'][0]}" in recorder["ExecStart"][0]
    assert f"--recorder {socket['ListenStream'][0]}" in daemon["ExecStart"][0]
    assert recorder["RestrictAddressFamilies"] == ["AF_UNIX"]


def test_the_units_are_units() -> None:
    for name in [path.name for path in (ROOT / "systemd").glob("localagent*.*") if path.suffix != ".toml"]:
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(ROOT / "systemd" / name)
        assert "Unit" in parser.sections()


def test_the_exposure_is_the_one_that_is_told() -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("needs systemd-analyze")
    ran = subprocess.run(
        [tool, "security", "--offline=true", "./localagent.service"],
        cwd=ROOT / "systemd",
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for localagent.service: ([0-9.]+)", ran.stdout)
    if found is None:
        pytest.skip(f"this systemd-analyze cannot judge offline: {ran.stderr[:200]}")
    assert float(found[1]) <= 2.5
