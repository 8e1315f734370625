"""Programs that attack whoever runs them as a tool: by what they print, what they leave behind, and how they end."""

import os
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.execute.run import code_of, execute
from localagent.domain.execution import Executed, Execution, Language
from localagent.domain.jailspec import JailLimits
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce, UsageFault
from localagent.jail.api import open_jail
from localagent.text.secret_redaction import Sanitizer, SecretKind

LIMITS = JailLimits(wall_seconds=20.0, cpu_seconds=20.0, resident_bytes=256 << 20, processes=32, tmp_bytes=64 << 20)
CANARY = "my-canary-value-77"


def run(text: str, out: Path | None = None, *, force: bool = False, limits: JailLimits = LIMITS) -> Executed:
    settings = Settings.from_environ({"HOME": "/nonexistent", "TMPDIR": "/tmp"})
    request = Execution(limits=limits, code=code_of(text.encode(), Language.PYTHON))
    sanitizer = Sanitizer([(CANARY, SecretKind.ENVIRONMENT)])
    return execute(request, settings, open_jail(), sanitizer, out=out, force=force)


def test_secrets_and_escapes_in_pieces_do_not_come_through() -> None:
    executed = run(
        "import os, time\n"
        "pieces = 'my-cana', 'ry-val\\x1b[1m', 'ue-\\u200b77 ', '\\x1b]0;title\\x07', '\\u202egpj.exe'\n"
        "for piece in (*pieces, 'ghp_' + 'a1' * 10, 'a1' * 8):\n"
        "    os.write(1, piece.encode()); time.sleep(0.05)\n"
        "os.write(2, b'-----BEGIN PRIVATE KEY-----\\nMIIE' + b'x' * 99)\n"
    )
    assert executed.stdout == "[redacted:environment] \\x1b]0;title\\x07\\u202egpj.exe[redacted:github-token]"
    assert executed.stderr == "[redacted:private-key]"
    assert sum(executed.redacted.values()) == 3


def test_a_flood_is_cut_and_a_fork_bomb_is_bounded() -> None:
    flood = run("import os\nwhile True: os.write(1, b'y\\n' * 999)")
    assert flood.ending is JailOutcome.OUTPUT
    assert len(flood.raw_stdout) <= LIMITS.output_bytes
    bomb = run("import os\nwhile True:\n    try: os.fork()\n    except OSError: os._exit(3)")
    assert bomb.ending in (JailOutcome.EXITED, JailOutcome.CPU, JailOutcome.WALL)


def test_what_is_left_behind_cannot_lead_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (out / "plain").symlink_to(victim)
    executed = run(
        "import os, socket\n"
        "os.symlink('/etc/passwd', 'link'); os.symlink('/', 'root'); os.mkfifo('fifo')\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('sock')\n"
        "os.makedirs('d/e'); os.symlink('../..', 'd/e/up'); open('d/e/f', 'w').write('f')\n"
        "open('plain', 'w').write('new'); open('a\\nb\\x1b[2J', 'w'); open('-rf', 'w')\n"
        "os.link('plain', 'hard'); os.chmod('d/e/f', 0)\n",
        out,
        force=True,
    )
    assert victim.read_text() == "mine"
    assert {one.name: one.why for one in executed.left_out if one.why != "Permission denied"} == {
        "link": "a link",
        "root": "a link",
        "fifo": "not a regular file",
        "sock": "not a regular file",
        "d/e/up": "a link",
    }
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names - {"d/e/f"} == {"plain", "hard", "a%0Ab%1B[2J", "%2Drf"}
    assert not any(path.is_symlink() for path in out.rglob("*"))
    assert {os.lstat(path).st_uid for path in out.rglob("*")} == {os.geteuid()}


@pytest.mark.long
def test_ten_thousand_files_and_a_deep_tree_are_bounded(tmp_path: Path) -> None:
    executed = run(
        "import os\nfor n in range(10000): open(f'f{n:05}', 'w').close()\n"
        "for n in range(200):\n    os.mkdir('d')\n    os.chdir('d')\n    open('x', 'w').close()\n",
        tmp_path / "out",
    )
    assert executed.returncode == 0
    assert len(executed.files) == 1000
    assert len(executed.left_out) <= 1001


@pytest.mark.long
def test_a_sparse_giant_and_a_full_disk_are_refused() -> None:
    sparse = run("open('s', 'wb').truncate(10 << 30)")
    assert "File too large" in sparse.stderr
    assert sparse.files[0].bytes == 0
    disk = run(
        "f = [open(str(n), 'wb') for n in range(4)]\n"
        "for x in f: x.write(b'1' * (40 << 20)); x.flush()\nwhile True: pass"
    )
    assert disk.ending is JailOutcome.DISK


def test_nothing_runs_where_no_jail_is_sound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from localagent.cli.main import main
    from localagent.jail.probe import selection

    def none(*_: object, **__: object) -> None:
        raise CannotEnforce("no sound jail")

    monkeypatch.setattr(selection, "find_backend", none)
    marker = tmp_path / "ran"
    assert main(["jail", "run", "--rw", str(tmp_path), "-c", f"open({str(marker)!r}, 'w')"]) == 4
    assert not marker.exists()


def test_an_input_named_to_climb_is_refused(tmp_path: Path) -> None:
    settings = Settings.from_environ({"HOME": "/nonexistent", "TMPDIR": "/tmp"})
    request = Execution(limits=LIMITS, code=code_of(b"1", Language.PYTHON, name="../../evil"))
    with pytest.raises(UsageFault):
        execute(request, settings, open_jail(), Sanitizer())
