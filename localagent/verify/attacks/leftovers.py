"""What one candidate leaves for the next: a test that leaves it, and a test that passes only where nothing was left.

In one process (the control: plain pytest) each second test fails.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftover:
    """`leave` and `look` are bodies of two tests; `look` passes where nothing is left."""

    name: str
    text: str
    leave: str
    look: str


def _left(name: str, text: str, leave: str, look: str) -> Leftover:
    return Leftover(name=name, text=text, leave=leave, look=look)


LEFTOVERS: tuple[Leftover, ...] = (
    _left(
        "a module", "Put a module into sys.modules.", "sys.modules['left'] = sys", "assert 'left' not in sys.modules"
    ),
    _left(
        "an import path",
        "Put a folder first on sys.path.",
        "sys.path.insert(0, '/left')",
        "assert '/left' not in sys.path",
    ),
    _left("a global of the source", "Change a module of the source.", "m.LEFT = 1", "assert not hasattr(m, 'LEFT')"),
    _left(
        "a patched built-in",
        "Replace a built-in function.",
        "builtins.left = len",
        "assert not hasattr(builtins, 'left')",
    ),
    _left(
        "a patched class of the standard library",
        "Replace a method of a class that everybody uses.",
        "pathlib.Path.left = 1",
        "assert not hasattr(pathlib.Path, 'left')",
    ),
    _left(
        "a file in /tmp",
        "Leave a file in /tmp.",
        "open('/tmp/left', 'w').close()",
        "assert not os.path.exists('/tmp/left')",
    ),
    _left(
        "a closed folder in /tmp",
        "Leave a folder without rights in /tmp.",
        "os.makedirs('/tmp/left-folder/in'); os.chmod('/tmp/left-folder', 0)",
        "assert not os.path.exists('/tmp/left-folder')",
    ),
    _left(
        "a file in /dev/shm",
        "Leave a file in shared memory.",
        "open('/dev/shm/left', 'w').close()",
        "assert not os.path.exists('/dev/shm/left')",
    ),
    _left(
        "the rights of /tmp",
        "Change who may do what in /tmp and in shared memory.",
        "[os.chmod(f, 0o1773) for f in ('/tmp', '/dev/shm')]",
        "assert [f for f in ('/tmp', '/dev/shm') if os.stat(f).st_mode & 0o7777 == 0o1773] == []",
    ),
    _left(
        "the times of /tmp",
        "Write a word into the times of /tmp and of shared memory.",
        "[os.utime(f, (77, 77)) for f in ('/tmp', '/dev/shm')]",
        "assert [f for f in ('/tmp', '/dev/shm') if 77 in (os.stat(f).st_atime, os.stat(f).st_mtime)] == []",
    ),
    _left(
        "a thread",
        "Leave a thread running.",
        "threading.Thread(target=time.sleep, args=(60,), name='left', daemon=True).start()",
        "assert 'left' not in [t.name for t in threading.enumerate()]",
    ),
    _left(
        "a process",
        "Leave a process in a session of its own.",
        "subprocess.Popen(['sleep', '60.25'], start_new_session=True)",
        "pids = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "    assert not [p for p in pids if b'60.25' in open(f'/proc/{p}/cmdline', 'rb').read()]",
    ),
    _left(
        "a signal handler",
        "Leave a handler of a signal.",
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL",
    ),
    _left("the environment", "Set a variable.", "os.environ['LEFT'] = '1'", "assert 'LEFT' not in os.environ"),
    _left("the working folder", "Change the working folder.", "os.chdir('/')", "assert os.getcwd() != '/'"),
    _left("the file mode mask", "Change the umask.", "os.umask(0o777)", "kept = os.umask(0o22); assert kept != 0o777"),
    _left(
        "a listening socket",
        "Leave a socket that listens.",
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen(); builtins.left_socket = s",
        "assert socket.socket(socket.AF_UNIX).connect_ex('\\0left') != 0",
    ),
    _left(
        "an exit function",
        "Register a function for the interpreter's end.",
        "atexit.register(len, ())",
        "assert atexit._ncallbacks() == BEFORE",
    ),
    _left(
        "the random state",
        "Seed the random numbers.",
        "random.seed(77)",
        "assert random.random() != random.Random(77).random()",
    ),
    _left(
        "a limit of the interpreter",
        "Change the recursion limit.",
        "sys.setrecursionlimit(5000)",
        "assert sys.getrecursionlimit() != 5000",
    ),
    _left(
        "a limit of the kernel",
        "Lower the number of open files for good.",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))",
        "assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] != 99",
    ),
    _left(
        "a trace function",
        "Leave a trace function for new threads.",
        "threading.settrace(print)",
        "assert threading._trace_hook is None",
    ),
    _left(
        "a logging handler",
        "Leave a handler of log records.",
        "logging.getLogger('left').addHandler(logging.NullHandler())",
        "assert not logging.getLogger('left').handlers",
    ),
    _left(
        "standard output",
        "Replace standard output's original.",
        "sys.__stdout__ = None",
        "assert sys.__stdout__ is not None",
    ),
)

_MODULES = "atexit, builtins, logging, os, pathlib, random, resource, signal, socket, subprocess, sys, threading, time"


def repository() -> dict[str, str]:
    """The files of a repository with both tests of each."""
    rows = [f"import {_MODULES}", "import m", "BEFORE = atexit._ncallbacks()"]
    for kind in ("leave", "look"):
        for number, entry in enumerate(LEFTOVERS):
            rows += [f"def test_{kind}_{number}():", f"    {getattr(entry, kind)}"]
    return {"m.py": "def f():\n    return 1\n", "test_m.py": "\n".join(rows) + "\n"}


def test_id(kind: str, number: int) -> str:
    """Of the `leave` or `look` test of an entry."""
    return f"test_m.py::test_{kind}_{number}"
