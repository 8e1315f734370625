"""Dialogues with `localagent chat` in a pseudo-terminal, judged by the copy, the patch and the tree that they end with.

    python bench/chat_dialogues.py                # 20
    python bench/chat_dialogues.py --only 3 --show

Each begins with an instruction; then come, in an order drawn by its number, a Ctrl-C (while the model streams, or while
a tool runs), `/undo` or `/undo all`, a correction, the end of the conversation (`/quit`, `kill -9`, or `/quit` and a
`session resume --say`) with its resumption, and two of `/plan`, `/diff`, `/test`, `/why`; in the end `/diff`, in every
second one another instruction and `/apply`. The scripted model does what each instruction says. What the copy must hold
is computed beside it, and compared after every step; nothing may be in the tree before `/apply`, and exactly that then.
Ends with 1 when a dialogue goes otherwise.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from support import chat_terminal  # noqa: E402
from support.chat_terminal import Terminal  # noqa: E402
from support.false_model_server import CHAT, FalseModelServer, completion, false_model_server, status  # noqa: E402
from support.git_builder import Repo  # noqa: E402

from localagent.agent.events import writes_of  # noqa: E402
from localagent.app.agent.session_store import open_session  # noqa: E402
from localagent.record.store import TaskStore  # noqa: E402

FILES = {
    "shop/__init__.py": "",
    "shop/labels.py": 'def label(name):\n    """A label."""\n    return name.strip()\n',
    "tests/test_labels.py": "from shop.labels import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}
BODY = 'def shout(text):\n    """Loud."""\n    return text.upper() + "{0}"\n'
TEST = "from shop.extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A{0}'\n"
FINISH = ("finish", {"summary": "done"})
ENDED = "/apply writes it into your files"
PROMPT = "\n> "
LOOKS = ("/plan", "/diff", "/test", "/why")
Call = tuple[str, dict[str, Any]]


def dialogue(number: int) -> list[str]:
    """Its steps."""
    dice = random.Random(number)
    undo, leave = ("undo", "undo all")[number % 2], ("quit", "kill", "say")[number % 3]
    steps = [("stream", "tool")[number // 2 % 2], undo, "correct", leave, *dice.sample(LOOKS, 2)]
    dice.shuffle(steps)
    return ["instruct", *steps, "/diff", *(["instruct", "apply"] if number % 4 < 2 else [])]


class Dialogue:
    """One at work: the terminal, the server, and what the copy must hold."""

    def __init__(self, root: Path, server: FalseModelServer) -> None:
        self.root, self.server = root, server
        self.repo = Repo(root / "r")
        for name, data in FILES.items():
            self.repo.stage(name, data)
        self.repo.commit()
        (root / "tmp").mkdir()
        root.chmod(0o755)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(root / "state"), "XDG_CACHE_HOME": str(root / "cache"), "TMPDIR": str(root / "tmp"),
        }  # fmt: skip
        self.steps: list[tuple[str, str]] = []  # writes that stand, one a call
        self.tree = dict(FILES)
        self.version = 0
        self.open = contextlib.ExitStack()
        self._begin("--repo", str(self.repo.folder), "--model", f"unix:{server.socket}", "--trust", "auto")

    def _begin(self, *words: str) -> None:
        self.open.close()
        self.terminal: Terminal = self.open.enter_context(chat_terminal.chat(*words, environ=self.env))
        self.terminal.until("> ")

    def _calls(self) -> list[Call]:
        """The next version of function and test: what the model does of the instruction that follows."""
        self.version += 1
        calls: list[Call] = []
        for path, text in (("shop/extra.py", BODY), ("tests/test_extra.py", TEST)):
            now, new = dict(self.steps).get(path), text.format("!" * self.version)
            if now is None:
                calls.append(("create", {"path": path, "content": new}))
            else:
                calls.append(("edit", {"path": path, "old": now.splitlines()[-1], "new": new.splitlines()[-1]}))
            self.steps.append((path, new))
        return [("plan", {"steps": ["write the function", "write its test"]}), *calls, FINISH]

    def _script(self, calls: list[Call], last: Callable[[Callable[[bytes], object]], None] | None = None) -> None:
        left = iter(calls)

        def write(out: Callable[[bytes], object]) -> None:
            found = next(left, None)
            if found is not None:
                status(200, completion(None, (found[0], json.dumps(found[1])), finish="tool_calls"))(out)
            elif last is not None:
                last(out)

        self.server.answers[CHAT] = write

    def do(self, step: str) -> None:
        """Carry out a step. AssertionError where what is shown, or what stands then, is not what must be."""
        t = self.terminal
        match step:
            case "instruct" | "correct":
                self._script(self._calls())
                t.type(f"{step}: {'!' * self.version}", ENDED)
                t.until(PROMPT)
            case "stream":
                self._script([], _streams)
                t.type("go on", "pondering")
                self._interrupt()
            case "tool":
                self._script([("run", {"code": "import time; time.sleep(600)"})])
                asked = len(self.server.bodies)
                os.write(t.ours, b"look at it\n")
                while len(self.server.bodies) == asked:
                    time.sleep(0.05)
                time.sleep(random.Random(self.version).uniform(0.5, 4.0))
                self._interrupt()
            case "undo" | "undo all":
                self._script([])
                if not self.steps:
                    t.type(f"/{step}", "has changed nothing")
                else:
                    t.type(f"/{step}", "taken back in the copy")
                    self.steps = [] if step == "undo all" else self.steps[:-1]
                t.until(PROMPT)
            case "quit" | "kill" | "say":
                self._leave(step)
            case "apply":
                t.type("/apply", "what you say next begins a new patch")
                t.until(PROMPT)
                self.tree |= dict(self.steps)
            case _:
                self._look(step)
        self._hold(step)

    def _interrupt(self) -> None:
        self.terminal.interrupt()
        self.terminal.until("interrupted; the tree is as it was")
        self.terminal.until(PROMPT)

    def _leave(self, way: str) -> None:
        """The conversation ends, is perhaps corrected by another command, and is taken up again."""
        if way == "kill":
            self.terminal.process.kill()
        else:
            self.terminal.type("/quit", "to go on: localagent chat --resume")
        self.terminal.process.wait()
        session = self._session()
        if way == "say":
            self._script(self._calls())
            words = ["session", "resume", session, "--say", "one more", "--assume", "--quiet"]
            argv = [sys.executable, "-m", "localagent", *words]
            ended = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr[-500:]
        self._begin("--resume", session)

    def _look(self, command: str) -> None:
        shown = self.terminal.type(command, PROMPT).replace("\r\n", "\n")
        copy = dict(self.steps)
        if command == "/plan":
            assert "2. write its test" in shown, shown
        elif command == "/test":
            whole = self._passes(copy)
            assert whole is None or ("passed, 0 failed" in shown) is whole, (copy, shown)
        elif command == "/diff":
            assert self._patched(shown) == FILES | copy, shown
        else:
            assert PROMPT in shown

    def _passes(self, copy: dict[str, str]) -> bool | None:
        """Whether the copy's tests pass; None where a test has nothing to import."""
        body, test = copy.get("shop/extra.py", ""), copy.get("tests/test_extra.py", "")
        if test and not body:
            return None
        return not test or body.count("!") == test.count("!")

    def _patched(self, shown: str) -> dict[str, str]:
        """The first tree with the diff that was shown."""
        begin = shown.find("diff --git") if "diff --git" in shown else shown.find("--- ")
        if begin < 0:
            assert "nothing is changed" in shown, shown
            return dict(FILES)
        with tempfile.TemporaryDirectory(dir=self.root / "tmp") as name:
            other = Repo(Path(name))
            for path, data in FILES.items():
                other.write(path, data)
            other.git("apply", "-", stdin=shown[begin : shown.rindex(PROMPT) + 1].encode())
            return _files(other.folder)

    def _session(self) -> str:
        return max(p.parent.name for p in (self.root / "state").glob("localagent/tasks/*/session.json"))

    def _hold(self, step: str) -> None:
        """The tree and the copy are what they must be."""
        found = _files(self.repo.folder)
        assert found == self.tree, f"after {step} the tree holds {found}"
        record = TaskStore(self.root / "state/localagent").open(self._session())
        copy = {str(p): text for p, text in writes_of(open_session(record).events).items()}
        assert copy == dict(self.steps), f"after {step} the copy holds {copy}, not {dict(self.steps)}"
        if step in ("instruct", "correct", "say", "apply"):
            patch = record.patch()
            kept = {str(c.path): (c.after or b"").decode() for c in patch.changes} if patch is not None else {}
            assert kept == copy, f"after {step} the patch holds {kept}"


def _files(folder: Path) -> dict[str, str]:
    found = (p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(p.relative_to(folder)): p.read_text() for p in found}


def _streams(out: Callable[[bytes], object]) -> None:
    """Words without an end, until nobody listens."""
    out(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for _ in range(3000):
        out(b"data: " + json.dumps({"choices": [{"delta": {"content": "pondering "}}]}).encode() + b"\n\n")
        time.sleep(0.1)


def main() -> int:
    """0 when each goes as it must."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=20)
    parser.add_argument("--only", type=int, action="append", help="this one; may be repeated")
    parser.add_argument("--show", action="store_true", help="print what the terminal showed")
    args = parser.parse_args()
    chat_terminal.SECONDS = 600  # on a busy machine a proof takes its time, and says nothing meanwhile
    numbers, good = args.only or range(args.dialogues), 0
    for number in numbers:
        began, fault, told = time.monotonic(), "", dialogue(number)
        with tempfile.TemporaryDirectory(prefix="la-chat-") as name, false_model_server() as server:
            at_work = Dialogue(Path(name), server)
            with at_work.open:
                try:
                    for step in told:
                        at_work.do(step)
                except AssertionError as wrong:
                    fault = f"\n      WRONG {wrong}"
            if args.show:
                print(at_work.terminal.seen)
        good += not fault
        print(f"{number:3}  {time.monotonic() - began:4.0f} s  {', '.join(told)}{fault}", flush=True)
    print(f"{good} of {len(numbers)} dialogues as they must be (bar: all), load {os.getloadavg()[0]:.1f}")
    return 0 if good == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
