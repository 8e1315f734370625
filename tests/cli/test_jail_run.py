"""`jail run`, `jail list`, `jail end` as typed: arguments, exit codes, what is shown, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.session_builder import Kept, kept

from localagent.cli.main import main
from localagent.jail_sessions.client import history

ROOT = Path(__file__).resolve().parents[2]


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["jail", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    with kept() as it:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(it.folder / "runtime"))
        monkeypatch.setenv("TMPDIR", str(it.folder / "scratch"))
        yield it


@pytest.mark.long
def test_a_program_its_files_and_its_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, err = call(
        capsys, "run", "--out", str(out), "-c", "open('a', 'w').write('1')\nprint('\\x1b[2Jhi')\nexit(7)"
    )
    assert (code, shown) == (7, "\\x1b[2Jhi\n")
    assert "file: a, 1 bytes, sha256:6b86b273ff34" in err
    assert (out / "a").read_text() == "1"
    code, _, err = call(capsys, "run", "--out", str(out), "-c", "open('a', 'w').write('2')")
    assert "--force replaces it" in err
    assert (out / "a").read_text() == "1"
    call(capsys, "run", "--force", "--out", str(out), "-c", "open('a', 'w').write('2')")
    assert (out / "a").read_text() == "2"


def test_json_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = call(capsys, "run", "--json", "--limit", "wall=0.4s", "-c", "import time; time.sleep(9)")
    value = json.loads(shown)
    assert (code, value["ending"], value["limit"], value["schema"]) == (1, "wall", "wall", "localagent/execution/1")
    page = (ROOT / "docs" / "jail.md").read_text(encoding="utf-8")
    assert [key for key in value if f"| `{key}` |" not in page] == []


@pytest.mark.long
def test_denied_code_does_not_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, shown, err = call(capsys, "run", "--gate", "-c", "print('ran')\nimport os\nos.system('ls')")
    assert (code, shown) == (1, "")
    assert "denied by run-process: main.py:3" in err
    (tmp_path / "evil.py").write_text("import pickle\npickle.loads(b'')\n")
    code, shown, err = call(capsys, "run", "--gate", "--file", str(tmp_path), "-c", "print('ran')")
    assert (code, shown) == (1, "")
    assert "evil.py:2" in err
    code, shown, err = call(capsys, "run", "--gate", "--lang", "bash", "-c", "echo ran")
    assert (code, shown) == (4, "")
    assert "cannot gate bash" in err
    assert call(capsys, "run", "--gate", "-c", "print('ran')")[:2] == (0, "ran\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["run"], "nothing to run"),
        (["run", "--"], "no command after --"),
        (["run", "-c", "1", "--", "true"], None),
        (["run", "--lang", "bash", "--", "true"], "not to a command"),
        (["run", "no-such-file.py"], "no-such-file.py: No such file"),
        (["run", "echo", "hi"], "a command to run goes after --"),
        (["run", "--keep", "s", "--", "true"], "a session runs programs"),
        (["run", "--keep", "s", "-c", "1", "x"], "no arguments"),
        (["run", "--keep", "../s", "-c", "1"], "no name of a session"),
        (["run", "--keep", "s", "--ttl", "soon", "-c", "1"], "wants a time"),
        (["run", "--profile", "/no/such.toml", "-c", "1"], "such.toml"),
    ],
)
def test_faults_are_told(capsys: pytest.CaptureFixture[str], place: Kept, words: list[str], fault: str | None) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert fault is None or fault in err
    assert place.supervisor() == 0


@pytest.mark.long
def test_a_session_from_start_to_end(capsys: pytest.CaptureFixture[str], place: Kept, tmp_path: Path) -> None:
    assert call(capsys, "list")[:2] == (0, "no sessions\n")
    code, shown, err = call(capsys, "run", "--keep", "s", "--ttl", "5m", "-c", "x = 20\nx + 1")
    assert (code, shown, err) == (0, "21\n", "session s: started, ends in 5 minutes\n")
    code, shown, err = call(capsys, "run", "--keep", "s", "-c", "open('f', 'w').write(str(x)); x")
    assert (code, shown) == (0, "20\n")
    assert call(capsys, "list")[1].startswith("s: python, 2 steps, ends in ")
    value = json.loads(call(capsys, "list", "--json")[1])
    assert [(one["name"], one["steps"], one["alive"]) for one in value] == [("s", 2, True)]
    code, shown, err = call(capsys, "end", "s", "--out", str(tmp_path / "out"))
    assert (code, shown) == (0, "session s ended after 2 steps\n")
    assert (tmp_path / "out/f").read_text() == "20"
    assert call(capsys, "end", "s")[0] == 1


@pytest.mark.long
def test_gates_read_what_earlier_steps_said(capsys: pytest.CaptureFixture[str], place: Kept) -> None:
    assert call(capsys, "run", "--keep", "s", "--gate", "-c", "import os as helper\nname = helper.path")[0] == 0
    code, _, err = call(capsys, "run", "--keep", "s", "--gate", "-c", "helper.system('ls')")
    assert code == 1
    assert "denied by run-process" in err
    assert call(capsys, "run", "--keep", "s", "--gate", "-c", "print(2)")[:2] == (0, "2\n")


@pytest.mark.long
def test_ctrl_c_ends_the_step_with_130_and_the_session_lives(capsys: pytest.CaptureFixture[str], place: Kept) -> None:
    call(capsys, "run", "--keep", "s", "-c", "import time\nx = 3")
    command = [sys.executable, "-m", "localagent", "jail", "run", "--keep", "s", "-c", "print('on')\ntime.sleep(99)"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)
    )
    while (known := history("s", place.settings)) is None or known[0].steps < 2:
        time.sleep(0.05)
    time.sleep(0.3)  # the worker has begun the step: at the latest an early signal ends it before its first line
    process.send_signal(signal.SIGINT)
    shown, err = process.communicate()
    assert (process.returncode, shown) == (130, "on\n")
    assert "KeyboardInterrupt" in err
    assert call(capsys, "run", "--keep", "s", "-c", "x")[:2] == (0, "3\n")


@pytest.mark.long
def test_raw_is_the_bytes_themselves() -> None:
    command = [
        sys.executable,
        "-m",
        "localagent",
        "jail",
        "run",
        "--raw",
        "-c",
        "import os; os.write(1, b'\\x1b[2J\\xff')",
    ]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, b"\x1b[2J\xff")


@pytest.mark.long
def test_standard_input_is_a_program() -> None:
    command = [sys.executable, "-m", "localagent", "jail", "run", "--lang", "bash", "-", "one"]
    done = subprocess.run(command, input=b"echo $1", capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, b"one\n")
