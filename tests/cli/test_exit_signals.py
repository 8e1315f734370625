"""Ctrl-C ends a verb wherever the signal finds it, and only once."""

import subprocess
import sys

import pytest

LOST = """
import gc, os, signal, sys, time
from localagent.app.cancellation import Stop
from localagent.cli.exit_signals import stop_on_signals

class Dying:
    def __del__(self):
        callback("stop", {})

def callback(phase, _info):
    if phase == "stop" and not stopped:
        stopped.append(1)
        os.kill(os.getpid(), signal.SIG%s)
        time.sleep(0)  # here Python calls the handler, and what it raises gets no further

stopped, calls, stop = [], [], Stop()
with stop.calling(lambda: calls.append(1)):
    stop_on_signals(stop)
    stop_on_signals(stop)  # as chat does at each instruction
    try:
        if sys.argv[1] == "gc":
            gc.callbacks.append(callback)
            gc.collect()
        else:
            Dying()
        time.sleep(60)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGINT)  # a second one does not disturb the clearing up
        time.sleep(0.2)
        print("ended", calls)
"""


@pytest.mark.parametrize("name", ["INT", "TERM"])
@pytest.mark.parametrize("where", ["gc", "del"])
def test_an_interruption_that_a_callback_swallows_is_raised_again(name: str, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST % name, where], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended [1]\n", "", 0)
