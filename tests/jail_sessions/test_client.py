"""Kept sessions: real supervisor, real jails. State stays, steps stay apart, the end leaves nothing."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.session_builder import Kept, kept

from localagent.domain.execution import Language
from localagent.domain.outcome import JailOutcome
from localagent.errors import AnswerIsNo, UsageFault
from localagent.jail_sessions import client

BASH: dict[str, Any] = {"language": Language.BASH, "name": "b"}


@pytest.fixture(scope="module")
def place() -> Iterator[Kept]:
    with kept() as it:
        yield it


@pytest.mark.long
def test_the_namespace_is_kept_and_the_last_expression_echoed(place: Kept) -> None:
    first = place.step("import math\nx = 41\ndef f(y):\n    return x + y\nf(1)", name="ns")
    assert (first.stdout, first.stderr, first.returncode) == ("42\n", "", 0)
    second = place.step("x = 1\nf(1), _, math.pi > 3", name="ns")
    assert second.stdout == "(2, 42, True)\n"
    assert second.session is not None
    assert (second.session.steps, second.session.alive) == (2, True)


def test_exceptions_exits_and_syntax_errors_leave_the_session_alive(place: Kept) -> None:
    raised = place.step("def g():\n    raise ValueError('no')\ng()", name="ex")
    assert raised.returncode == 1
    assert raised.stderr.splitlines()[-1] == "ValueError: no"
    assert "    raise ValueError('no')" in raised.stderr  # the source of a step is known to tracebacks
    assert "python_repl.py" not in raised.stderr
    assert place.step("import sys; sys.exit(7)", name="ex").returncode == 7
    left = place.step("sys.exit('words')", name="ex")
    assert (left.returncode, left.stderr) == (1, "words\n")
    assert "SyntaxError" in place.step("def (", name="ex").stderr
    assert place.step("1 + 1", name="ex").stdout == "2\n"


def test_closed_streams_are_the_closed_step_s_alone(place: Kept) -> None:
    assert place.step("import sys, os; sys.stdout.close(); sys.stderr.close()", name="shut").returncode == 0
    assert place.step("os.close(1); os.close(2); 1 / 0", name="shut").returncode == 1
    assert place.step("'back'", name="shut").stdout == "'back'\n"


def test_bash_keeps_its_state(place: Kept) -> None:
    place.step('x=5; declare -a l=(a b); cd /tmp; f() { echo "f $x ${l[1]} $PWD"; }; set -o pipefail', **BASH)
    second = place.step("f; echo err >&2; false | true; echo $?; (exit 9)", **BASH)
    assert (second.stdout, second.stderr, second.returncode) == ("f 5 b /tmp\n1\n", "err\n", 9)
    assert place.step("cat; return 4", **BASH).returncode == 4  # standard input is empty, not the next step


def test_an_exit_of_the_shell_ends_the_session_and_says_so(place: Kept) -> None:
    ended = place.step("echo bye; exit 3", name="bye", language=Language.BASH)
    assert (ended.stdout, ended.returncode, ended.ending) == ("bye\n", 3, JailOutcome.EXITED)
    assert ended.session is not None
    assert (ended.session.alive, ended.session.ended) == (False, "its interpreter ended (died, status 3)")
    assert "bye" not in {one.name for one in client.sessions(place.settings)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("import time\nwhile True: time.sleep(0.1)", Language.PYTHON),
        ("import subprocess\nsubprocess.run(['sleep', '99'])", Language.PYTHON),
        ("g() { for i in 1 2 3; do sleep 99; done; echo no; }; g; echo no", Language.BASH),
        ("while :; do :; done", Language.BASH),
    ],
)
def test_an_interrupt_ends_the_step_and_not_the_session(place: Kept, code: str, language: Language) -> None:
    more: dict[str, Any] = {"name": f"int-{language}", "language": language}
    place.step("x=7", **more)
    timer: list[threading.Timer] = []

    def soon(line: Any) -> None:
        timer.append(threading.Timer(0.4, line.interrupt))
        timer[0].start()

    ended = place.step(code, on_start=soon, **more)
    timer[0].join()
    assert ended.ending is JailOutcome.CANCELLED
    assert "no" not in ended.stdout
    again = place.step("print(x)" if language is Language.PYTHON else "echo $x", **more)
    assert (again.stdout, again.returncode) == ("7\n", 0)


@pytest.mark.long
def test_a_step_over_its_wall_clock_is_ended_and_the_session_lives(place: Kept) -> None:
    place.step("x = 5", name="wall")
    ended = place.step("print('before')\nwhile True: pass", name="wall", limits={"wall_seconds": 0.5})
    assert (ended.ending, ended.stdout) == (JailOutcome.WALL, "before\n")
    assert place.step("x", name="wall").stdout == "5\n"


def test_output_beyond_the_limit_ends_the_step_and_the_session_lives(place: Kept) -> None:
    ended = place.step("x = 5\nwhile True: print('y' * 999)", name="flood", limits={"output_bytes": 5000})
    assert ended.ending is JailOutcome.OUTPUT
    assert len(ended.raw_stdout) + len(ended.raw_stderr) == 5000
    assert place.step("x", name="flood").stdout == "5\n"


@pytest.mark.long
def test_what_an_earlier_step_left_running_does_not_print_into_a_later_one(place: Kept) -> None:
    place.step(
        "import subprocess, threading, time, os\n"
        "subprocess.Popen(['sh', '-c', 'sleep 0.3; echo LATE; echo LATE >&2'])\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('LATE'))).start()\n"
        "if os.fork() == 0:\n    time.sleep(0.3)\n    print('LATE', flush=True)",
        name="late",
    )
    second = place.step("time.sleep(0.8)\n'mine'", name="late")
    assert (second.stdout, second.stderr) == ("'mine'\n", "")
    place.step("(sleep 0.3; echo LATE) & disown", **BASH)
    assert place.step("sleep 0.6; echo mine", **BASH).stdout == "mine\n"


def test_files_of_a_step_and_of_the_whole_session_come_out(place: Kept, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,2\n")
    request = {"files": (str(tmp_path / "in.csv"),)}
    place.step("open('one', 'w').write(open('in.csv').read())", name="files", request=request)
    second = place.step("open('two', 'w').write('2')", name="files", out=str(tmp_path / "step"))
    assert [(f.name, f.bytes, f.copied) for f in second.files] == [("two", 1, True)]
    _, files, left_out = client.end("files", place.settings, out=tmp_path / "all")
    assert ([f.name for f in files], left_out) == (["one", "two"], ())
    assert (tmp_path / "all/one").read_text() == "1,2\n"


def test_a_data_frame_that_is_echoed_becomes_a_file(place: Kept, tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text(
        "class DataFrame:\n    def __repr__(self): return 'frame'\n"
        "    def to_csv(self, path): open(path, 'w').write('a,b\\n1,2\\n')\n"
    )
    request = {"files": (str(tmp_path / "pandas.py"),)}
    shown = place.step("import pandas\nopen('frame-1.csv', 'w')\npandas.DataFrame()", name="df", request=request)
    assert shown.stdout == "frame\n[the data frame is in frame-2.csv]\n"
    assert ("frame-2.csv", 8) in [(f.name, f.bytes) for f in shown.files]


def test_only_the_first_step_decides_what_the_jail_is(place: Kept) -> None:
    place.step("0", name="fixed")
    with pytest.raises(UsageFault) as caught:
        place.step(
            "0",
            name="fixed",
            language=Language.BASH,
            limits={"processes": 5},
            request={"read_only": ("/usr/share",)},
            named=("language", "processes", "read_only"),
        )
    assert len(caught.value.faults) == 3


@pytest.mark.long
def test_a_second_step_at_the_same_time_is_refused(place: Kept) -> None:
    place.step("import time", name="busy")
    thread = threading.Thread(target=place.step, args=("time.sleep(1.5)",), kwargs={"name": "busy"})
    thread.start()
    time.sleep(0.4)
    with pytest.raises(AnswerIsNo, match="busy with another step"):
        place.step("1", name="busy")
    thread.join()


@pytest.mark.long
def test_ending_a_session_ends_the_step_that_runs(place: Kept) -> None:
    place.step("import time", name="cut")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(place.step("time.sleep(99)", name="cut")))
    thread.start()
    time.sleep(0.4)
    client.end("cut", place.settings)
    thread.join()
    assert answers[0].session is not None
    assert (answers[0].session.alive, answers[0].session.ended) == (False, "it was ended")


@pytest.mark.long
def test_code_too_long_to_be_gated_is_refused_then(place: Kept) -> None:
    for _ in range(2):
        place.step("#" + "x" * (3 << 20), name="long")
    with pytest.raises(AnswerIsNo, match="too long to be gated"):
        client.history("long", place.settings)
    assert place.step("1", name="long").stdout == "1\n"


def test_what_the_gates_read_must_be_what_the_session_is(place: Kept) -> None:
    place.step("1", name="gates", gated=True, after=0)
    assert client.history("gates", place.settings) is not None
    with pytest.raises(AnswerIsNo, match="went on while the gates read"):
        place.step("2", name="gates", gated=True, after=0)
    assert client.history("none", place.settings) is None


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", ".hidden", "-rf", "a\nb", "x" * 65, "é"])
def test_names_that_are_no_names(place: Kept, name: str) -> None:
    with pytest.raises(UsageFault, match="no name of a session"):
        place.step("1", name=name)
    with pytest.raises(UsageFault, match="no name of a session"):
        client.end(name, place.settings)


def test_node_is_not_kept(place: Kept) -> None:
    with pytest.raises(UsageFault, match="node cannot be kept"):
        place.step("1", name="n", language=Language.NODE)


@pytest.mark.long
def test_the_time_to_live_ends_a_session_and_leaves_nothing() -> None:
    with kept() as place:
        place.step("import time", ttl_seconds=1.0)
        ended = place.step("time.sleep(9)")
        assert ended.ending is JailOutcome.WALL
        assert ended.session is not None
        assert (ended.session.alive, ended.session.ended) == (False, "its time to live is over")
        assert client.sessions(place.settings) == ()


@pytest.mark.long
def test_the_supervisor_leaves_after_the_last_session_and_nothing_is_left() -> None:
    with kept() as place:
        place.step("1")
        pid = place.supervisor()
        assert oct((place.settings.runtime_dir / "sessions.sock").stat().st_mode)[-3:] == "600"
        assert oct(place.settings.runtime_dir.stat().st_mode)[-3:] == "700"
        client.end("s", place.settings)
        os.waitpid(pid, 0)
        assert list(place.settings.runtime_dir.iterdir()) == []
        assert list((place.folder / "scratch").iterdir()) == []
        with pytest.raises(AnswerIsNo, match="there is no session s"):
            client.end("s", place.settings)


@pytest.mark.long
def test_a_killed_supervisor_takes_its_jails_along_and_the_next_one_sweeps() -> None:
    with kept() as place:
        marker = f"{os.getpid()}.73515"
        place.step(f"import subprocess\nx = 1\nsubprocess.Popen(['sleep', '{marker}'])")
        pid = place.supervisor()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert (place.settings.runtime_dir / "sessions.sock").exists()  # stale
        again = place.step("'x' in globals()")
        assert again.stdout == "False\n"
        assert again.session is not None
        assert again.session.steps == 1
        assert len(list((place.folder / "scratch").iterdir())) == 1
        commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
        assert not [c for c in commands if marker.encode() in c]


@pytest.mark.long
def test_two_commands_at_once_start_one_supervisor() -> None:
    with kept() as place:
        threads = [threading.Thread(target=place.step, args=("1",), kwargs={"name": f"t{n}"}) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.name for one in sorted(client.sessions(place.settings), key=lambda s: s.name)] == [
            "t0",
            "t1",
            "t2",
        ]
