"""Hostile inputs to the parsers of policies, diffs and sources: nothing may crash, hang, or be allowed by mistake.

`python bench/gates_fuzz.py --count 100000 [--seed 1] [--state FILE]`: a third each of policies (whole files, layers, a
repository's pyproject.toml), diffs (read and applied to a small tree), and sources (put to every gate of patches). Each
input is made of its number and the seed alone, by mutating real ones and by mixing hostile pieces, so a run can be cut
and resumed (`--state`) and one input looked at again (`--only N`). It tells how far it is (`--every`), and a run that
is interrupted (Ctrl-C, SIGTERM) still sums up what it did, with exit 130. One process: the parsers bind the processor.
Counted: crashes (an exception that is no answer, a
gate that could not answer), inputs that took longer than `--seconds`, and an answer of "allowed" beside an error.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import fields
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.app.review.patch_gate import verdict_of  # noqa: E402
from localagent.domain.diff import ChangeKind, DiffFault, FileMode, TreeChange  # noqa: E402
from localagent.domain.gate import Allow, Decision  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402
from localagent.domain.policy import Policy  # noqa: E402
from localagent.domain.review import PatchVerdict  # noqa: E402
from localagent.errors import AnswerIsNo, UsageFault  # noqa: E402
from localagent.gate.patch_gates import PatchGates  # noqa: E402
from localagent.gate.rule_catalogue import RULES, for_a_person, own_ids, rule_texts  # noqa: E402
from localagent.policy.limits import meet_limits  # noqa: E402
from localagent.policy.load import load_policy, parse_policy  # noqa: E402
from localagent.policy.policy_layers import LAYER_SCHEMA, PolicySource, combine  # noqa: E402
from localagent.repo.diff.apply_in_memory import apply_diff  # noqa: E402
from localagent.repo.diff.parse_diff import parse_diff  # noqa: E402

LIMITS = b"\n[limits]\nmemory_mib = 512\nprocesses = 64\ncpu_seconds = 300\nfile_mib = 16\n"
POLICY = (ROOT / "policies" / "default.toml").read_bytes().replace(b"\n[limits]\n", LIMITS)
PIECES = [
    *(bytes([n]) for n in (0, 9, 10, 12, 13, 34, 35, 39, 40, 41, 61, 64, 91, 92, 93, 123, 125)),
    *(text.encode() for text in (
        "\r\n", '"""', "'''", "\\u202e", "[[", "]]", "---", "+++ b/", "--- a/", "@@ -1,1 +1,1 @@", "@@ -0,0 +1 @@",
        "diff --git a/x b/x\n", "rename from a\n", "new file mode 120000\n", "GIT binary patch\n",
        "\\ No newline at end of file\n", "../", "/etc/passwd", ".git/config", "\u202e\u200b", "\u0430\uff4d",
        "lambda: ", "eval(", "getattr(", "import os\n", "def f():\n    ", "class A:\n  ", "yield ", "await ",
        "match x:\n case ", "f'{", "}'", "1e999", ":=", "nan", "true", "localagent",
        "# coding: utf-7\n", "# coding: rot13\n", "# coding: punycode\n", "# coding: utf-16\n",
    )),
    b"*" * 40, b"a" * 400, b".a" * 300, b"(" * 300, b"[" * 400, b"if x:\n" * 30, b"not " * 300, b"-" * 300, b"x." * 300,
    b"0x" + b"f" * 5000, b"9" * 5000, b"\xff\xfe", b"\xc3",
]  # fmt: skip


class TooLong(BaseException):
    """An input took longer than it may."""


def _mutated(chance: random.Random, data: bytes) -> bytes:
    """Some cuts, doublings, exchanges, flipped bytes and hostile pieces."""
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 9))):
        at, to = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        to = min(to, at + chance.choice((1, 5, 60, 2000)))
        match chance.randrange(6):
            case 0:
                data = data[:at] + data[to:]
            case 1:
                data = data[:to] + data[at:to] + data[to:]
            case 2 if data:
                data = data[: at - 1] + bytes([chance.randrange(256)]) + data[at:]
            case 3:
                data = data[:at] + chance.choice(PIECES) + data[at:]
            case 4:
                data = data[:at] + chance.choice(PIECES) + data[to:]
            case _:
                lines = data.split(b"\n")
                one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[one], lines[two] = lines[two], lines[one]
                data = b"\n".join(lines)
    return data


def _rubble(chance: random.Random) -> bytes:
    return b"".join(chance.choice(PIECES) for _ in range(chance.randrange(40)))


class Fuzz:
    """Everything that stays the same between inputs."""

    def __init__(self, seed: int, tree: Path) -> None:
        self._seed, self._tree = seed, tree
        self._policy = load_policy(ROOT / "policies" / "default.toml")
        self._rules = rule_texts(self._policy)
        self._gates = PatchGates(self._policy)
        self._reference = PolicySource(name="default", data=POLICY)
        cut = POLICY.index(b"[danger]")
        tables = POLICY[POLICY.index(b"[paths]") : cut]
        layered = tables.replace(b'known_names = "known-packages.txt"\n', b"").replace(b"\n[", b"\n[tool.localagent.")
        self._policies = (
            POLICY,
            f"schema = {LAYER_SCHEMA!r}\n".encode() + tables.replace(b'known_names = "known-packages.txt"\n', b""),
            b"[project]\nname = 'x'\n[tool.localagent." + layered[1:],
        )
        patches = ROOT / "tests" / "gate" / "patches"
        base = json.loads((patches / "base.json").read_text())
        for name, text in base.items():
            place = tree / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        self._diffs = [p.read_bytes().partition(b"\n")[2].lstrip(b"\n") for p in sorted(patches.rglob("*.patch"))]
        examples = [e for rule in RULES for e in (*rule.match, *rule.not_match) if len(e.after) < 5000 and e.after]
        self._sources = [e.after.encode("utf-8", "surrogateescape") for e in examples]
        self._sources += [text.encode() for name, text in base.items() if name.endswith(".py")]

    def run(self, number: int) -> str:
        """What one input came to. Raises what is a crash."""
        chance = random.Random(f"{self._seed}:{number}")
        return (self._a_policy, self._a_diff, self._a_source)[number % 3](chance)

    def _a_policy(self, chance: random.Random) -> str:
        kind = chance.randrange(3)
        data = _rubble(chance) if chance.random() < 0.1 else _mutated(chance, self._policies[kind])
        source = PolicySource(name="x.toml", data=data)
        try:
            if kind == 0:
                policy = parse_policy(data, "x.toml")
            else:
                system, project = ((source,), None) if kind == 1 else ((), source)
                policy = combine(self._reference, system, project, POLICY).policy
        except UsageFault as fault:
            if not fault.faults:
                raise AssertionError("refused without a fault") from fault
            return "policy refused"
        if kind:
            return "policy right" if self._is_tighter(policy) else "ALLOWED: a layer that loosens"
        return "policy right"

    def _is_tighter(self, tight: Policy) -> bool:
        """Nothing that the base denies is allowed, or put to a person, under the base with a layer."""
        loose = self._policy
        sizes = [field.name for field in fields(loose.size)]
        small = all(getattr(tight.size, k) <= getattr(loose.size, k) for k in sizes)
        small = small and all(getattr(tight.patches.size, k) <= getattr(loose.patches.size, k) for k in sizes)
        bounds = tight.limits == meet_limits(tight.limits, loose.limits)
        denied = set(loose.paths.denied) <= set(tight.paths.denied)
        denied = denied and set(loose.patches.denied) <= set(tight.patches.denied)
        firm = (own_ids() | {d.id for d in loose.dangers}) - for_a_person(loose)
        people = "*" in loose.approvals.people or set(tight.approvals.people) <= set(loose.approvals.people)
        asked = people and not firm & for_a_person(tight)
        return small and bounds and denied and asked and set(loose.dangers) <= set(tight.dangers)

    def _a_diff(self, chance: random.Random) -> str:
        data = _rubble(chance) if chance.random() < 0.1 else _mutated(chance, chance.choice(self._diffs))
        try:
            entries = apply_diff(parse_diff(data), self._tree)
        except DiffFault as fault:
            if not fault.remedy:
                raise AssertionError("refused without a remedy") from fault
            return f"diff {fault.rule.value}"
        except AnswerIsNo:
            return "diff refused"
        return self._reviewed(entries, "diff")

    def _a_source(self, chance: random.Random) -> str:
        before = chance.choice(self._sources)
        after = _rubble(chance) if chance.random() < 0.05 else _mutated(chance, before)
        if chance.random() < 0.2:
            before = _mutated(chance, before)
        return self.judged(
            before, after, chance.choice(("pkg/mod.py", "tests/test_it.py", "pkg/mod.pyi", "conftest.py", "docs/a.md"))
        )

    def judged(self, before: bytes, after: bytes, name: str) -> str:
        """What a changed source came to. Raises what is a crash."""
        path, plain = RepoPath(name), FileMode.REGULAR
        same = {"path": path, "source": path, "before_mode": plain, "after_mode": plain}
        entry = TreeChange(kind=ChangeKind.MODIFIED, before=before, after=after, **same)  # type: ignore[arg-type]
        return self._reviewed((entry,), "source")

    def _reviewed(self, entries: tuple[TreeChange, ...], kind: str) -> str:
        decisions: list[Decision] = self._gates.review(entries, everything=True)
        verdict = verdict_of(decisions, self._rules)
        errors = [f.message for d in decisions if d.answer is Allow.ERROR for f in d.findings]
        if errors and verdict is not PatchVerdict.REFUSED:
            return f"ALLOWED: {verdict} beside an error: {errors[0]}"
        if errors:
            raise RuntimeError(errors[0])
        return f"{kind} {verdict.value}"


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def _ended(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _told(done: int, count: int, begun: float, first: int, bad: int) -> None:
    """One line of progress, on the error stream."""
    seconds = time.monotonic() - begun
    left = (count - done) * seconds / max(1, done - first)
    print(f"{done:,} of {count:,}, {bad} bad, {seconds:.0f} s, about {left:.0f} s left", file=sys.stderr, flush=True)


def _tried(fuzz: Fuzz, number: int, seconds: int) -> tuple[str, str]:
    """(what one input came to, what is wrong with that)."""
    signal.alarm(seconds)
    try:
        outcome = fuzz.run(number)
    except TooLong:
        outcome = "HANG"
    except Exception as crash:  # noqa: BLE001 - that is what is looked for
        return f"CRASH {type(crash).__name__}", f"{type(crash).__name__}: {crash}"
    finally:
        signal.alarm(0)
    return outcome, outcome if outcome.startswith(("ALLOWED", "HANG")) else ""


def main() -> int:
    """Run and print; 1 if anything crashed, hung or was allowed by mistake, 130 if interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=30, help="a single input may take so long")
    parser.add_argument("--state", type=Path, help="go on where this file says, and keep it up to date")
    parser.add_argument("--every", type=int, default=5_000, help="tell how far it is after so many inputs")
    parser.add_argument("--only", type=int)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    start, bad = 0, []
    if args.state and args.state.exists():
        kept = json.loads(args.state.read_text())
        if kept["seed"] != args.seed:
            parser.error(f"{args.state} is of seed {kept['seed']}")
        start, counts, bad = kept["next"], Counter(kept["counts"]), kept["bad"]
    signal.signal(signal.SIGALRM, _alarm)
    signal.signal(signal.SIGTERM, _ended)
    begun, interrupted = time.monotonic(), False
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        fuzz = Fuzz(args.seed, Path(folder))
        if args.only is not None:
            print(fuzz.run(args.only))
            return 0
        try:
            for number in range(start, args.count):
                outcome, what = _tried(fuzz, number, args.seconds)
                if what:
                    bad.append([number, what[:300]])
                counts[outcome] += 1
                if (number + 1) % args.every == 0:
                    _told(number + 1, args.count, begun, start, len(bad))
                if args.state and (number % 500 == 499 or number == args.count - 1):
                    kept = {"seed": args.seed, "next": number + 1, "counts": dict(counts), "bad": bad}
                    args.state.write_text(json.dumps(kept))
        except KeyboardInterrupt:
            signal.alarm(0)
            interrupted = True
    for outcome, count in counts.most_common():
        print(f"{count:8}  {outcome}")
    for number, what in bad[:40]:
        print(f"input {number}: {what}")
    allowed = sum(n for outcome, n in counts.items() if outcome.startswith("ALLOWED"))
    crashed = sum(n for outcome, n in counts.items() if outcome.startswith(("CRASH", "HANG")))
    print(f"{crashed} crashed or hung, {allowed} allowed beside an error")
    print(f"{sum(counts.values()):,} inputs, {len(bad)} bad, {time.monotonic() - begun:.0f} s of this run")
    if interrupted:
        print(f"interrupted: {sum(counts.values()):,} of {args.count:,} inputs")
        return 130
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
