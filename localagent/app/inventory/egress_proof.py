"""Runs localagent's own ways of working under a syscall trace and judges what they asked of the kernel.

The user's home stays what it is, so that a read of it is seen; state, cache and scratch lie in one throw-away folder. A
proof is of this installation on this machine, just now: not promised is what other tasks would do.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.app.execute.known_secrets import CREDENTIAL_FILES
from localagent.app.settings import PACKAGE, Settings, data_root
from localagent.errors import CannotEnforce
from localagent.jail.trace.egress import AllowedPaths, EgressReport, judge
from localagent.jail.trace.syscall_trace import Tracer, find_tracer, traced

EXAMPLE = Path("examples") / "ledger"
SECONDS = 900.0
_HOOK = """set -eu
mkdir hooked && cd hooked && git init -q && printf 'ANSWER = 42\\n' > answer.py && git add -A
"$0" -m localagent hook install
git -c user.name=proof -c user.email=proof@localhost commit -q -m proof
"""
_SESSION = """set -eu
"$0" -m localagent jail run --keep proof -c 'x = 41'
"$0" -m localagent jail run --keep proof -c 'print(x + 1)'
"$0" -m localagent jail end proof
"""
_DAEMON = """set -eu
socket=$XDG_RUNTIME_DIR/proof.sock
"$0" -m localagent serve --socket "$socket" --state "$PWD/daemon" & serving=$!
trap 'kill -TERM $serving 2>/dev/null || true' EXIT
until [ -S "$socket" ]; do
    kill -0 $serving 2>/dev/null || { wait $serving; exit 9; }
    sleep 0.2
done
"$0" -m localagent fix --repo repo --daemon "$socket" --out daemon.diff --quiet
test -s daemon.diff
kill -TERM $serving
wait $serving
trap - EXIT
"""
# A model server with two replies at a Unix socket, and `do` or `chat` that talks to it.
_CONVERSATION = """import json, os, pty, socketserver, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler
edit = {"path": "src/ledger/journal.py", "old": "<= entry.day < last", "new": "<= entry.day <= last"}
replies = iter([("edit", edit), ("finish", {"summary": "the last day belongs to the period"})])
class Model(BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        value = {"data": [{"id": "scripted"}]}
        if self.path == "/v1/chat/completions":
            name, given = next(replies)
            call = {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            value = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
socket = os.path.join(os.environ["XDG_RUNTIME_DIR"], sys.argv[1] + ".sock")
server = Server(socket, Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
verb, told = sys.argv[1], ["--repo", "repo", "--model", "unix:" + socket, "--trust", "auto"]
own = [sys.executable, "-m", "localagent", verb]
if verb == "do":
    sys.exit(subprocess.call([*own, "make the tests pass", *told, "--assume", "--out", "do.diff", "--quiet"]))
pid, terminal = pty.fork()
if pid == 0:
    os.execve(own[0], [*own, *told], {**os.environ, "TERM": "dumb"})
seen = ""
for awaited, line in (("> ", "make the tests pass"), ("/apply writes", "/apply"), ("a new patch", "/quit")):
    while awaited not in seen:
        data = os.read(terminal, 65536)
        os.write(1, data)
        seen += data.decode("utf-8", "replace")
    seen = ""
    os.write(terminal, line.encode() + b"\\n")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofStep:
    """One way of working: its name, what was run, how it ended, and the judgement of its trace."""

    name: str
    argv: tuple[str, ...]
    exit: int
    said: str
    judged: EgressReport


@dataclass(frozen=True, kw_only=True, slots=True)
class OfflineProof:
    """Every step. Offline if and only if each ended well and nothing was found."""

    tracer: Tracer
    steps: tuple[ProofStep, ...]

    @property
    def offline(self) -> bool:
        """True when nothing speaks against it."""
        return all(step.exit == 0 and not step.judged.findings for step in self.steps)


def steps() -> Mapping[str, tuple[str, ...]]:
    """Name to command, run in the folder that holds a copy of the example as `repo`."""
    own = (sys.executable, "-m", "localagent")
    return {
        "demo": (*own, "fix", "--repo", "repo", "--out", "demo.diff", "--report", "demo.json", "--quiet"),
        "hook": ("/bin/sh", "-c", _HOOK, sys.executable),
        "session": ("/bin/sh", "-c", _SESSION, sys.executable),
        "daemon": ("/bin/sh", "-c", _DAEMON, sys.executable),
        "do": (sys.executable, "-c", _CONVERSATION, "do"),
        "chat": (sys.executable, "-c", _CONVERSATION, "chat"),
    }


def prove(settings: Settings, only: Sequence[str] = ()) -> Iterator[ProofStep | Tracer]:
    """The tracer, then each step (or those named) as it ends. CannotEnforce when calls cannot be seen."""
    tracer = find_tracer()
    yield tracer
    if shutil.which("git", path="/usr/local/bin:/usr/bin:/bin") is None:
        raise CannotEnforce("git is missing, so the hook cannot be tried", remedy="apt install git")
    example = data_root() / EXAMPLE
    if not example.is_dir():
        raise CannotEnforce(f"the example is missing: {example}", remedy="install localagent anew")
    with tempfile.TemporaryDirectory(prefix="localagent-proof-", dir=settings.scratch_dir) as name:
        work = Path(name).resolve()
        work.chmod(0o711)  # jails run as users of their own
        shutil.copytree(example, work / "repo", ignore=shutil.ignore_patterns("__pycache__"))
        environ = _environ(work)
        ways = _ways(work, settings, environ)
        for step, argv in ((name, argv) for name, argv in steps().items() if not only or name in only):
            ran = traced(tracer, argv, environ=environ, cwd=work, scratch=settings.scratch_dir, seconds=SECONDS)
            judged = judge(ran.calls, cwd=work, ways=ways, reached=ran.reached)
            words = ran.said.decode("utf-8", "replace")[-2000:]
            yield ProofStep(name=step, argv=argv, exit=ran.exit, said=words, judged=judged)


def _environ(work: Path) -> dict[str, str]:
    """The user's own, with state, cache, sockets and scratch below `work`, and git without anybody's settings."""
    for name in ("state", "cache", "run", "tmp"):
        (work / name).mkdir(mode=0o711)
    (work / "run").chmod(0o700)
    given = os.environ.get("PYTHONPATH", "")
    # from a checkout, that one is proven, and not another that may be installed
    ours = {"PYTHONPATH": f"{PACKAGE.parent}{os.pathsep if given else ''}{given}"} if _checkout() else {}
    return {
        **os.environ,
        **ours,
        "XDG_STATE_HOME": str(work / "state"),
        "XDG_CACHE_HOME": str(work / "cache"),
        "XDG_RUNTIME_DIR": str(work / "run"),
        "TMPDIR": str(work / "tmp"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _checkout() -> bool:
    return (PACKAGE.parent / "pyproject.toml").is_file()


def _ways(work: Path, settings: Settings, environ: Mapping[str, str]) -> AllowedPaths:
    """What localagent says that it touches: docs/security.md."""
    home = Path(environ.get("HOME") or "/nonexistent").resolve()
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    code = {sys.prefix, sys.base_prefix, str(PACKAGE.parent), *_of_the_path(environ)}
    own = {str(settings.data_dir), str(config / "localagent"), str(config / "git"), str(home / ".gitconfig")}
    own |= {str(home / name) for name in (".inputrc", ".terminfo")}  # readline's, at the terminal of a chat
    own |= {str(home / name) for name in CREDENTIAL_FILES}  # read to hide what they hold
    places = sorted(os.path.realpath(path) for path in code | own)
    return AllowedPaths(
        writable=(str(work),), home=str(home), readable=tuple(p for p in places if p not in ("/", str(home)))
    )


def _of_the_path(environ: Mapping[str, str]) -> Iterator[str]:
    """Folders of `sys.path`: not the one we were started in, which `python -m` puts there, unless somebody named it."""
    given = {os.path.realpath(entry) for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    here = os.path.realpath(".")
    for entry in sys.path:
        if entry and (os.path.realpath(entry) != here or here in given):
            yield entry
