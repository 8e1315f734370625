"""What systemd hands over is what the code reads: names in units, drop-in and docs; a daemon that attests by it."""

import re
import sys
from pathlib import Path

import pytest
from support.fix_builder import ADDER, home
from support.service_builder import Served, served

from localagent.cli.main import main
from localagent.record.attest.keys import CREDENTIAL, PASSPHRASE

ROOT = Path(__file__).resolve().parents[2]
WORD = b"a phrase that nobody guesses"
READ = {CREDENTIAL, PASSPHRASE}


def named(text: str) -> set[str]:
    """The names of credentials that a text has systemd load or encrypt."""
    loaded = re.findall(r"LoadCredential(?:Encrypted)?=([\w.-]+)", text)
    return {*loaded, *re.findall(r"systemd-creds encrypt --name=([\w.-]+)", text)}


def test_units_drop_in_and_docs_name_what_is_read() -> None:
    drop_in = (ROOT / "systemd" / "credentials.conf").read_text()
    assert named(drop_in) == READ
    live = [line for line in drop_in.splitlines() if line and not line.startswith("#")]
    assert live == ["[Service]", f"LoadCredentialEncrypted={PASSPHRASE}"]
    for path in (*(ROOT / "systemd").iterdir(), *(ROOT / "docs").glob("*.md")):
        if path.suffix != ".png":
            assert named(path.read_text()) <= READ, path
    for name in ("localagent-recorder.service", "localagent-audit.service"):
        assert named((ROOT / "systemd" / name).read_text()) == READ
    for name in re.findall(r"localagent[\w-]*\.service", drop_in):
        assert (ROOT / "systemd" / name).is_file(), name
    for path in re.findall(r"/etc/credstore\.encrypted/([\w.]+)", drop_in):
        assert path in READ  # where LoadCredentialEncrypted=NAME looks: a file of that very name


def test_the_docs_say_where_each_unit_s_key_lies() -> None:
    page = (ROOT / "docs" / "attestation.md").read_text().split("### Under systemd\n")[1]
    batch = (ROOT / "systemd" / "localagent-batch.service").read_text()
    assert "XDG_DATA_HOME=/var/lib XDG" in batch
    assert "XDG_DATA_HOME=/var/lib XDG_STATE_HOME=/var/lib localagent key new" in page
    users = (ROOT / "systemd" / "sysusers.conf").read_text()
    assert re.search(r'^u localagent - "[^"]*" /var/lib/localagent -$', users, re.MULTILINE)
    assert "`/var/lib/localagent/.local/share/localagent/keys`" in page


def handed_over(daemon: Served, folder: Path) -> None:
    """An encrypted key of the daemon's user, and its passphrase as systemd hands it over."""
    folder.mkdir(mode=0o700)
    phrase = daemon.root / "phrase"
    phrase.write_bytes(WORD)
    phrase.chmod(0o600)
    with home() as place:
        data = daemon.root / "home" / ".local" / "share"
        place.extra.update(XDG_DATA_HOME=str(data), XDG_STATE_HOME=str(daemon.root / "home" / ".local" / "state"))
        assert place.run("key", "new", "--passphrase-file", str(phrase)).code == 0
    (folder / PASSPHRASE).write_bytes(WORD + b"\n")
    phrase.unlink()


@pytest.mark.long
def test_a_daemon_attests_with_an_encrypted_key_by_the_credential_it_is_handed() -> None:
    more = f'[[interpreter]]\nname = "this"\npath = "{sys.executable}"\n'
    with served(start=False, more=more) as daemon, home(ADDER) as place:
        folder = daemon.root / "credentials"
        handed_over(daemon, folder)
        daemon.start(wait=False)
        assert daemon.process is not None
        assert daemon.process.wait(timeout=60) == 2
        assert "is encrypted and no passphrase was given" in daemon.log()
        daemon.extra["CREDENTIALS_DIRECTORY"] = str(folder)
        daemon.start()
        ran = place.fix("--daemon", str(daemon.socket), "--python", "this")
        assert (ran.code, set(ran.report["attestation"])) == (0, {"file", "key"}), (ran, daemon.log())


@pytest.mark.long
def test_a_jail_sees_neither_the_credentials_nor_their_name(tmp_path: Path) -> None:
    spy = "import os\n\n\ndef test_spy():\n    assert 'CREDENTIALS_DIRECTORY' not in os.environ\n"
    spy += "    assert not os.path.exists(open('where').read())\n"
    with home({**ADDER, "test_spy.py": spy}) as place:
        folder = place.root / "credentials"
        folder.mkdir()
        (folder / PASSPHRASE).write_bytes(WORD)
        (place.repo / "where").write_text(str(folder / PASSPHRASE))
        assert main(["jail", "run", "--", "true"]) == 0
        place.extra["CREDENTIALS_DIRECTORY"] = str(folder)
        ran = place.fix()
        assert (ran.code, "test_spy.py::test_spy" in ran.report["pass_to_pass"]) == (0, True), ran
