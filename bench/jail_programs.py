"""200 small programs of many kinds, and whether two backends say the same about each."""

# ruff: noqa: E501 - programs in one line each read better here

import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.jail.api import NamespaceJail, Workspace, fresh_uid, interpreter_binds

ENV = (("PATH", "/usr/bin:/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8"))
LIMITS = JailLimits(wall_seconds=20, cpu_seconds=10)
PYTHON, BINDS = interpreter_binds(sys.executable)
# Without these, which do nothing by default or stop the process.
DEADLY = sorted(set(range(1, 32)) - {17, 18, 19, 20, 21, 22, 23, 28})


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    name: str
    spec: JailSpec
    stdin: bytes = b""


def _sh(name: str, script: str, *, cwd: str = "/tmp", stdin: bytes = b"", **limits: float) -> Program:
    spec = JailSpec(argv=("/bin/sh", "-c", script), cwd=cwd, env=ENV, limits=replace(LIMITS, **limits))
    return Program(name=name, spec=spec, stdin=stdin)


def _py(name: str, code: str, **limits: float) -> Program:
    argv = (PYTHON, "-I", "-S", "-c", code)
    spec = JailSpec(argv=argv, cwd="/tmp", env=ENV, binds=BINDS, limits=replace(LIMITS, **limits))
    return Program(name=name, spec=spec)


def programs() -> list[Program]:
    """The 200."""
    found = [*_codes(), *_signals(), *_streams(), *_words(), *_starts(), *_files(), *_inside(), *_limits()]
    if len(found) != 200:
        raise SystemExit(f"{len(found)} programs, not 200")
    return found


def _codes() -> Iterator[Program]:
    like_signals = (129, 130, 137, 143, 152, 159, 192)
    for code in (*range(13), 42, 64, 77, 99, 100, *range(125, 129), *like_signals, 193, 199, 202, 203, 254, 255):
        yield _sh(f"exit {code}", f"exit {code}")


def _signals() -> Iterator[Program]:
    for number in DEADLY:
        yield _sh(f"killed by {signal.Signals(number).name}", f"kill -{number} $$")
    yield _py("abort", "import os; os.abort()")
    yield _py("segmentation fault", "import ctypes; ctypes.string_at(0)")
    yield _py(
        "handled signal", "import os, signal\nsignal.signal(15, lambda *_: print('had it'))\nos.kill(os.getpid(), 15)"
    )
    yield _py(
        "ignored signal", "import os, signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(os.getpid(), 15); print('on')"
    )
    yield _sh("child killed", "sh -c 'kill -9 $$'; echo $?")
    yield _sh("pipe closed early", "yes | head -2")
    yield _sh("signals at start", "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status")


def _streams() -> Iterator[Program]:
    for size in (0, 1, 100, 4096, 65536, 65537, 300_000, 1_000_000):
        yield _sh(f"{size} bytes out", f"head -c {size} /dev/zero")
        yield _sh(f"{size} bytes err", f"head -c {size} /dev/zero >&2")
        yield _sh(f"{size} bytes in", "wc -c", stdin=b"x" * size)
    yield _sh("both streams", "echo out; echo err >&2; echo out; echo err >&2")
    yield _sh("output closed", "exec >&- 2>&-; exit 4")
    yield _sh("bytes that are no text", r"printf '\377\000\200'")
    yield _sh("input is no terminal", "[ -t 0 ] || [ -t 1 ] || echo none")


def _words() -> Iterator[Program]:
    words = (
        "",
        " ",
        "a b",
        "'",
        '"',
        "\\",
        "\n",
        "\t",
        "$HOME",
        "*",
        "--",
        "-x",
        "é",
        "\udcff",
        "a:b",
        "}{",
        "#",
        "\x01",
    )
    for word in words:
        spec = JailSpec(argv=("/usr/bin/printf", "[%s]", word), cwd="/tmp", env=ENV, limits=LIMITS)
        yield Program(name=f"argument {word!r}", spec=spec)
    for value in ("", "a=b", "a:b", '"', "\n", "é\udcfe"):
        spec = JailSpec(argv=("/usr/bin/env",), cwd="/tmp", env=(("A", value), ("B", "1")), limits=LIMITS)
        yield Program(name=f"environment {value!r}", spec=spec)


def _starts() -> Iterator[Program]:
    def of(name: str, *argv: str, cwd: str = "/tmp", env: tuple[tuple[str, str], ...] = ENV) -> Program:
        return Program(name=name, spec=JailSpec(argv=argv, cwd=cwd, env=env, limits=LIMITS))

    yield of("found along PATH", "true")
    yield of("found along PATH, later", "true", env=(("PATH", "/nowhere:/usr:/usr/bin"),))
    yield of("found without PATH", "true", env=())
    yield of("not on PATH", "true", env=(("PATH", "/nowhere"),))
    yield of("no such command", "/no/such")
    yield of("a folder", "/usr")
    yield of("not executable", "/etc/passwd")
    yield of("no such working folder", "/bin/true", cwd="/no/such")
    yield of("a working folder that is a file", "/bin/true", cwd="/etc/passwd")
    yield of("working folder", "/bin/pwd", cwd="/usr/lib")
    yield of("argv[0]", "sh", "-c", "echo $0")


def _files() -> Iterator[Program]:
    for folder in ("/", "/usr", "/etc", "/dev", "/proc", "/bin", "/tmp", "/dev/shm", "/home", "/root", "/var", "/sys"):
        yield _py(
            f"write in {folder}",
            f"import errno\ntry: open({folder + '/new'!r}, 'w'); print('written')\nexcept OSError as e: print(e.errno in (errno.EROFS, errno.EACCES, errno.ENOENT))",
        )
        yield _sh(f"see {folder}", f"[ -e {folder} ] && echo there || echo not")
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        yield _sh(f"read /etc/{name}", f"cat /etc/{name}")
    yield _sh("read /etc/shadow", "cat /etc/shadow 2>/dev/null || echo none")
    yield _sh("umask and modes", "umask; touch a; stat -c %a a; mkdir b; stat -c %a b")
    yield _sh("shared memory folder", "echo x > /dev/shm/a && cat /dev/shm/a")
    yield _sh(
        "links of /dev",
        "echo a | cat /dev/stdin; echo b > /dev/stdout; echo c > /dev/stderr; cat /dev/fd/0 < /etc/group",
    )
    yield _sh(
        "devices", "head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo > /dev/null; echo > /dev/full"
    )


def _inside() -> Iterator[Program]:
    yield _sh("who", "id -u; id -g; whoami")
    yield _sh("host name", "uname -n")
    yield _sh("capabilities", "grep -E 'Cap|NoNewPrivs|Seccomp' /proc/self/status")
    yield _sh("interfaces", "cut -d: -f1 /proc/net/dev")
    yield _sh("own processes alone", "set -- /proc/[0-9]*; echo $#")
    yield _sh("session", "cut -d' ' -f4,6,7,8 /proc/self/stat | tr -d '0-9-' | wc -c")
    yield _sh("resource limits", "cat /proc/self/limits")
    yield _sh("niceness", "cut -d' ' -f19 /proc/self/stat")
    yield _py("descriptors", "import os; print(os.listdir('/proc/self/fd'))")
    yield _py("pid is not 1", "import os; print(os.getpid() > 1, os.getppid())")
    yield _py(
        "orphans are reaped",
        "import os, time\nif os.fork() == 0:\n if os.fork() == 0: os._exit(0)\n os._exit(0)\nos.wait(); time.sleep(.2)\nprint(sum('Z' in open(f'/proc/{p}/stat').read().split(')')[1][:3] for p in os.listdir('/proc') if p.isdigit()))",
    )
    yield _py("left behind", "import os, time\nif os.fork() == 0: time.sleep(60)\nprint('done')")
    yield _py(
        "threads",
        "import threading\nt = [threading.Thread(target=int) for _ in range(9)]\n[x.start() for x in t]; [x.join() for x in t]; print('ok')",
    )
    yield _py(
        "pool",
        "import multiprocessing as m\nif __name__ == '__main__':\n with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))",
    )
    yield _py("terminal pair", "import pty, os\na, b = pty.openpty(); os.write(b, b'x'); print(os.read(a, 1))")
    yield _py(
        "loopback",
        "import socket\ns = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('ok')",
    )
    yield _py(
        "outside",
        "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError as e: print(e.errno)",
    )
    for call, number in (
        ("mount", 165),
        ("unshare", 272),
        ("ptrace", 101),
        ("keyctl", 250),
        ("bpf", 321),
        ("clone3", 435),
    ):
        yield _py(
            f"call {call}",
            f"import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nprint(l.syscall({number}, 0x10000000, 0, 0, 0, 0), ctypes.get_errno())",
        )


def _limits() -> Iterator[Program]:
    for seconds in (0.3, 0.6, 0.9):
        yield _sh(f"wall {seconds}", "echo began; sleep 60", wall_seconds=seconds)
    for seconds in (0.3, 0.6):
        yield _py(f"processor {seconds}", "while True: pass", cpu_seconds=seconds)
    yield _py("memory", "x = bytearray(b'x' * (300 << 20)); input()", resident_bytes=64 << 20, tmp_bytes=8 << 20)
    yield _py(
        "memory of a tree",
        "import os, time\nos.fork(); os.fork()\nx = bytearray(b'x' * (60 << 20)); time.sleep(30)",
        resident_bytes=128 << 20,
        tmp_bytes=8 << 20,
    )
    for stream in (1, 2):
        yield _sh(f"output flood {stream}", f"cat /dev/zero >&{stream}", output_bytes=50_000)
    yield _py("address space", "try: bytearray(8 << 30)\nexcept MemoryError: print('refused')")
    yield _py(
        "open files",
        "import errno\nf = []\ntry:\n while True: f.append(open('/dev/null'))\nexcept OSError as e: print(len(f), e.errno)",
        open_files=40,
    )
    yield _py(
        "processes",
        "import os, time\nn = 0\ntry:\n while True:\n  if os.fork() == 0: time.sleep(9)\n  n += 1\nexcept OSError as e: print(n, e.errno)",
        processes=12,
    )
    yield _py(
        "file size",
        "try:\n f = open('a', 'wb', 0)\n while True: f.write(b'x' * 4096)\nexcept OSError as e: print(e.errno, f.tell())",
        file_bytes=1 << 20,
    )
    yield _sh("file size, not handled", "head -c 3000000 /dev/zero > a; echo $?", file_bytes=1 << 20)
    yield _sh("full /tmp", "head -c 3000000 /dev/zero > a; stat -c %s a", tmp_bytes=1 << 20)
    yield _sh("full /dev/shm", "head -c 3000000 /dev/zero > /dev/shm/a; stat -c %s /dev/shm/a", tmp_bytes=1 << 20)


def compare(first: NamespaceJail, second: NamespaceJail, folder: Path) -> list[str]:
    """The differences over all programs; empty when the two always say the same."""
    out = []
    for program in programs():
        one, two = (_run(jail, program) for jail in (first, second))
        if _facts(program, one) != _facts(program, two):
            out.append(f"{program.name}: {_facts(program, one)!r} and {_facts(program, two)!r}"[:600])
    out += _in_a_workspace(first, second, folder)
    return out


def _run(jail: NamespaceJail, program: Program) -> JailResult:
    return jail.run(program.spec, stdin=program.stdin)


def _facts(program: Program, result: JailResult) -> tuple[object, ...]:
    if result.ending is JailOutcome.COULD_NOT_START:
        return result.ending, bool(result.stderr)
    if result.ending not in (JailOutcome.EXITED, JailOutcome.SIGNALLED):
        return result.ending, result.stdout  # a limit and the command's own end race for the code
    return result.ending, result.returncode, result.stdout, result.stderr


def _in_a_workspace(first: NamespaceJail, second: NamespaceJail, folder: Path) -> list[str]:
    """What is left in a writable bind: one more comparison, not counted among the programs."""
    left = []
    for jail in (first, second):
        with Workspace(folder, uid=fresh_uid()) as made:
            bind = Bind(source=str(made.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
            script = "echo a > a; mkdir d; ln -s a l; chmod 640 a; echo b > d/b"
            jail.run(JailSpec(argv=("/bin/sh", "-c", script), cwd="/w", binds=(bind,), env=ENV, limits=LIMITS))
            found = sorted(made.tree.rglob("*"))
            left.append([(str(path.relative_to(made.tree)), oct(path.lstat().st_mode)) for path in found])
    return [] if left[0] == left[1] else [f"left in a workspace: {left[0]} and {left[1]}"]
