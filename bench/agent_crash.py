"""Kills `localagent do` and resumes it: is anything lost, done twice, or changed in the tree?

    python bench/agent_crash.py                      # 200 kills
    python bench/agent_crash.py --kills 20 --seed 7

A scripted model server says the same conversation each time, by the results in it. Half of the kills come
after a random time, the others before a random one of the calls that change a file, which the process counts itself:
rare moments are met so. A resumed session may be killed again. Then, of every session: what its journal held at a kill
stands in it unchanged, no call was started or answered twice, no step was done twice or left out, the patch is the
undisturbed one, the repository is the same byte for byte, no process is left; and the audit journal holds.
Ends with 1 when one of these fails. Seeded; which moment a time meets depends on the machine.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from support.false_model_server import CHAT, FalseModelServer, completion, false_model_server, status  # noqa: E402
from support.git_builder import Repo  # noqa: E402

from localagent.agent.events import Answered, Replied, ResultKind, Started  # noqa: E402
from localagent.app.agent.session_store import open_session  # noqa: E402
from localagent.record.store import TaskStore  # noqa: E402

FILES = {
    "shop/__init__.py": "",
    "shop/labels.py": 'def label(name):\n    """A label."""\n    return name.strip()\n',
    "shop/old.py": "X = 1\n",
    "tests/test_labels.py": "from shop.labels import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}
TEST = "from shop.extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A!'\n"
REPLIES: list[list[tuple[str, dict[str, Any]]]] = [
    [("search", {"query": "label"}), ("read", {"path": "shop/labels.py"})],
    [("plan", {"steps": ["add shop/extra.py, drop shop/old.py", "add tests/test_extra.py"]})],
    [("create", {"path": "shop/extra.py", "content": 'def shout(text):\n    """Loud."""\n    return text.upper()\n'})],
    [("create", {"path": "tests/test_extra.py", "content": TEST})],
    [("edit", {"path": "shop/extra.py", "old": "text.upper()", "new": 'text.upper() + "!"'})],
    [("delete", {"path": "shop/old.py"}), ("run", {"code": "from shop.extra import shout\nprint(shout('b'))"})],
    [("run_tests", {})],
    [("finish", {"summary": "done"})],
]
CALLS = [call for reply in REPLIES for call in reply]
NEAR_THE_END = 40  # calls: where the end, the patch and the report are written; half of those kills are there
INTERRUPTED = "error: interrupted"
KILLER = """import atexit, os, signal, sys
told, left, seen, own = sys.argv.pop(1), int(sys.argv.pop(1)), 0, os.getpid()
CHANGES = {"os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "subprocess.Popen"}
def changes(event, args):
    global seen
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if (writes or event in CHANGES) and os.getpid() == own:
        seen += 1
        if seen == left:
            os.kill(own, signal.SIGKILL)
def tell():
    if os.getpid() == own:
        os.write(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), str(seen).encode())
atexit.register(tell)
sys.addaudithook(changes)
from localagent.cli.main import main
sys.exit(main())
"""
Chat = Callable[[Callable[[bytes], object]], None]


def scripted(server: FalseModelServer) -> Chat:
    """The reply that follows from the results that the conversation holds; what was interrupted is called again."""

    def write(out: Callable[[bytes], object]) -> None:
        results = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
        at = sum(not text.startswith(INTERRUPTED) for text in results)
        for reply in REPLIES:
            if at < len(reply):
                break
            at -= len(reply)
        calls = [(name, json.dumps(given)) for name, given in reply[at:]]
        status(200, completion(None, *calls, finish="tool_calls", usage={"prompt_tokens": 9}))(out)

    return write


class Place:
    """A repository and a state of its own; what is run there, and what stands there."""

    def __init__(self, root: Path, socket: Path) -> None:
        self.root, self.socket = root, socket
        self.repo = Repo(root / "r")
        for name, data in FILES.items():
            self.repo.stage(name, data)
        self.repo.commit()
        (root / "tmp").mkdir()
        root.chmod(0o755)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_STATE_HOME": str(root / "state"), "XDG_CACHE_HOME": str(root / "cache"), "TMPDIR": str(root / "tmp"),
        }  # fmt: skip
        self.before = self.tree()

    def start(self, words: list[str], call: int = 0) -> "subprocess.Popen[bytes]":
        """A command; killed before that call, counted from 1."""
        argv = [sys.executable, "-c", KILLER, str(self.root / "calls"), str(call), *words]
        out = (self.root / "said").open("wb")
        with out:
            return subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def words(self) -> list[str]:
        """The command that goes on: a new session where none was kept."""
        files = ["--quiet", "--out", str(self.root / "out.patch"), "--report", str(self.root / "report.json")]
        if self.session():
            return ["session", "resume", *files]
        told = ["--repo", str(self.repo.folder), "--model", f"unix:{self.socket}", "--trust", "auto", "--assume"]
        return ["do", "add a function shout to shop/extra.py and drop shop/old.py", *told, *files]

    def session(self) -> str:
        """The newest kept session, "" where there is none."""
        kept = sorted((self.root / "state").glob("localagent/tasks/*/session.json"))
        return kept[-1].parent.name if kept else ""

    def journal(self) -> bytes:
        """Whole lines of its journal."""
        path = self.root / "state/localagent/tasks" / (self.session() or "-") / "journal.jsonl"
        data = path.read_bytes() if path.exists() else b""
        return data[: data.rfind(b"\n") + 1]

    def tree(self) -> dict[str, str]:
        """Every file of the repository, git's own too, with mode and digest."""
        return {
            str(p.relative_to(self.repo.folder)): f"{p.lstat().st_mode:o} {hashlib.sha256(p.read_bytes()).hexdigest()}"
            for p in sorted(self.repo.folder.rglob("*"))
            if p.is_file()
        }

    def patch(self) -> bytes:
        """What was written to --out."""
        path = self.root / "out.patch"
        return path.read_bytes() if path.exists() else b""

    def left(self) -> list[str]:
        """Processes that belong to this place and live two seconds after the last of ours has ended."""
        found: list[str] = []
        for _ in range(20):
            found = []
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    command, environ = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                except OSError:
                    continue
                if str(self.root).encode() in command + environ and command:
                    found.append(command.replace(b"\0", b" ").decode("utf-8", "replace")[:160])
            if not found:
                break
            time.sleep(0.1)
        return found


def wrong(place: Place, kept: list[bytes], patch: bytes) -> list[str]:
    """What is not as it must be after a session that was killed and resumed to its end."""
    faults = [f"left: {command}" for command in place.left()]
    now = place.journal()
    faults += [f"journal: {len(was)} bytes at a kill, not its beginning now" for was in kept if not now.startswith(was)]
    if place.tree() != place.before:
        faults.append("the repository is not as it was")
    if place.patch() != patch:
        faults.append(f"another patch: {place.patch()[-200:]!r}")
    found = open_session(TaskStore(place.root / "state/localagent").open(place.session()))
    for kind in (Started, Answered):
        times = Counter(e.call_id for e in found.events if isinstance(e, kind))
        faults += [f"{kind.__name__} {count} times: {name}" for name, count in times.items() if count > 1]
    given = {c.id: (c.name, json.loads(c.arguments)) for e in found.events if isinstance(e, Replied) for c in e.calls}
    answers = [e for e in found.events if isinstance(e, Answered)]
    if (done := [given[e.call_id] for e in answers if e.kind is ResultKind.DONE]) != CALLS:
        faults.append(f"done: {[name for name, _ in done]}")
    faults += [f"{e.tool}: {e.text}" for e in answers if e.kind is not ResultKind.DONE and INTERRUPTED not in e.text]
    audit = subprocess.run(
        [sys.executable, "-m", "localagent", "audit", "verify"], env=place.env, capture_output=True, check=False
    )
    return faults + ([f"audit verify: {audit.stdout + audit.stderr!r}"] if audit.returncode else [])


def undisturbed(place: Place) -> tuple[bytes, float, int]:
    """The patch of a session that nobody kills, its seconds, and how many calls of it change a file."""
    began = time.monotonic()
    with place.start(place.words()) as process:
        code = process.wait()
    if code or not place.patch():
        raise SystemExit(f"the undisturbed session ended with {code}: {(place.root / 'said').read_text()}")
    return place.patch(), time.monotonic() - began, int((place.root / "calls").read_text())


def struck(
    place: Place, most: int, seconds: float, calls: int, dice: random.Random
) -> tuple[list[str], list[bytes], float]:
    """Kill and go on until it ends: where each kill fell, the journal as it stood then, and the last run's seconds."""
    where: list[str] = []
    kept: list[bytes] = []
    while True:
        began = time.monotonic()
        kill = len(where) < most
        first = calls - NEAR_THE_END if dice.random() < 0.5 else 1
        call = dice.randrange(first, calls + 1) if kill and dice.random() < 0.5 else 0
        moment = dice.uniform(0.1, seconds) if kill and not call else None
        process = place.start(place.words(), call)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        if code == -signal.SIGKILL:
            kept.append(place.journal())
            last = json.loads(kept[-1].splitlines()[-1])["kind"] if kept[-1] else "nothing kept"
            where.append(f"{f'call {call}' if call else f'{moment:.1f} s'}: {last}")
            continue
        said = (place.root / "said").read_text(errors="replace").strip()
        where += [f"ended with {code}: {said[-400:]}"] if code else []
        return where, kept, time.monotonic() - began


def main() -> int:
    """0 when every killed session came to its undisturbed end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--each", type=int, default=2, help="kills of one session at most")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    done = bad = sessions = 0
    met: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="la-crash-") as name, false_model_server() as server:
        Path(name).chmod(0o755)
        server.answers[CHAT] = scripted(server)
        patch, seconds, calls = undisturbed(Place(Path(name) / "undisturbed", server.socket))
        print(
            f"undisturbed: {seconds:.1f} s, {calls} calls that change a file, load {os.getloadavg()[0]:.1f}", flush=True
        )
        while done < args.kills:
            sessions += 1
            place = Place(Path(name) / f"{sessions}", server.socket)
            asked = len(server.bodies)
            most = min(args.kills - done, dice.randrange(1, args.each + 1))
            where, kept, seconds = struck(place, most, seconds, calls, dice)
            faults = wrong(place, kept, patch) + [text for text in where if text.startswith("ended with")]
            if (more := len(server.bodies) - asked - len(REPLIES) - 2 * len(kept)) > 0:
                faults.append(f"the model was asked {more} times too often")
            done += len(kept)
            met.update(text.partition(": ")[2] for text in where[: len(kept)])
            bad += bool(faults)
            print(f"{done:4}  {'; '.join(where)}" + "".join(f"\n      WRONG {text}" for text in faults), flush=True)
    print(f"{done} kills of {sessions} sessions, by the last kept event: {dict(met.most_common())}")
    print(f"{bad} sessions wrong (bar: 0), load {os.getloadavg()[0]:.1f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
