"""Every rule put to its own examples: it must fire on each `match` and on no `not_match`.

Rules that are written in code are tried under the built-in default policy, for which their examples were written; the
table of dangers and the commands under the policy that is asked about. Nothing of an example runs.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from localagent.domain.diff import ChangeKind, DiffFault, FileMode, TreeChange
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.gate import Allow, Decision, Severity
from localagent.domain.outcome import Baseline, CheckResult, Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.patch_gates import PatchGates
from localagent.gate.repair_gates import Chain, open_gate_chain
from localagent.gate.rule_catalogue import IN_PATCHES, IN_REPAIRS, WHILE_READING
from localagent.gate.security.forbidden_apis import Dangerous
from localagent.policy.commands import example_fault
from localagent.ports import GateChain
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff
from localagent.text.byte_diff import changed_span

JUDGE = RepoPath("pkg/judge.py")  # a file that holds collected tests, though its name does not say so
_GONE = RepoPath("pkg/gone.py")
_BESIDE = RepoPath("pkg/rates.py")
_TEST_FILE = RepoPath("tests/test_it.py")
_TEST = "tests/test_it.py::test_f[1-2]"


class RuleKind(StrEnum):
    """Where a rule stands."""

    GATE = "gate"
    DANGER = "danger"
    COMMAND = "command"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One example of one rule. `wrong` says what it did instead, "" if it did as it says."""

    rule: str
    kind: RuleKind
    example: str
    wrong: str


def try_all(policy: Policy, default: Policy) -> Iterator[Tried]:
    """Every example of every rule, in the order of the rules."""
    yield from try_gates(default)
    yield from try_dangers(policy)
    for rules in policy.commands:
        for command in rules.rules:
            for key, wanted, texts in (("match", True, command.match), ("not_match", False, command.not_match)):
                for number, text in enumerate(texts):
                    wrong = example_fault(command, text, wanted=wanted)
                    yield Tried(rule=command.id, kind=RuleKind.COMMAND, example=f"{key}[{number}]", wrong=wrong)


def try_gates(default: Policy) -> Iterator[Tried]:
    """The rules that are written in code."""
    with tempfile.TemporaryDirectory(prefix="localagent-examples-") as scratch:
        for rule in WHILE_READING:
            for key, number, example in _numbered(rule):
                yield _tried(rule, f"reading.{key}[{number}]", while_reading(example, Path(scratch)), key)
    chain = open_gate_chain(default, {JUDGE})
    for rule in IN_REPAIRS:
        for key, number, example in _numbered(rule):
            fired = in_repair(chain, example)
            yield _tried(rule, f"repair.{key}[{number}]", fired, key, alone=True)
    gates = PatchGates(default)
    for rule in IN_PATCHES:
        for key, number, example in _numbered(rule):
            yield _tried(rule, f"patch.{key}[{number}]", in_patch(gates, example), key)


def try_dangers(policy: Policy) -> Iterator[Tried]:
    """The table of dangers, whatever severity the policy denies from."""
    gate = Dangerous(replace(policy, deny_at=Severity.INFO))
    for rule in policy.dangers:
        for key, texts in (("match", rule.match), ("not_match", rule.not_match)):
            for number, code in enumerate(texts):
                wrong = _wrong(rule.id, introduced(gate, code), key)
                yield Tried(rule=rule.id, kind=RuleKind.DANGER, example=f"{key}[{number}]", wrong=wrong)


def _numbered(rule: Rule) -> Iterator[tuple[str, int, RuleExample]]:
    for key, examples in (("match", rule.match), ("not_match", rule.not_match)):
        yield from ((key, number, example) for number, example in enumerate(examples))


def _tried(rule: Rule, example: str, fired: set[str], key: str, *, alone: bool = False) -> Tried:
    return Tried(rule=rule.id, kind=RuleKind.GATE, example=example, wrong=_wrong(rule.id, fired, key, alone=alone))


def _wrong(rule: str, fired: set[str], key: str, *, alone: bool = False) -> str:
    if key == "match":
        return "" if rule in fired else f"must fire; what fired: {', '.join(sorted(fired)) or 'nothing'}"
    if alone and fired:
        return f"no rule may fire; what fired: {', '.join(sorted(fired))}"
    return "must not fire, and does" if rule in fired else ""


def _rules(decisions: Sequence[Decision]) -> set[str]:
    """The rules of all findings; a gate that could not answer counts as a rule of its own name."""
    return {f.rule for d in decisions for f in d.findings} | {
        f"gate-error of {d.gate}" for d in decisions if d.answer is Allow.ERROR
    }


def while_reading(example: RuleExample, scratch: Path) -> set[str]:
    """What the reader of patches says of `example.patch`, for a tree whose one file is the example's before."""
    place = scratch / example.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(_bytes(example.before))
    try:
        apply_diff(parse_diff(_bytes(example.patch)), scratch)
    except DiffFault as fault:
        return {fault.rule.value}
    return set()


def in_repair(chain: GateChain, example: RuleExample) -> set[str]:
    """The rules that fire on an example that is a repair."""
    failure = Failure(exception=example.exception, message="") if example.exception else None
    baseline = Baseline(
        tests=(TestResult(id=_TEST, outcome=Outcome.FAILED, failure=failure, path=_TEST_FILE),),
        failing=(_TEST,),
        test_files=frozenset({_TEST_FILE, JUDGE}),
    )
    if example.check:
        check = CheckResult(command=example.check, outcome=Outcome.FAILED, seconds=0.0)
        baseline = replace(baseline, checks=(check,))
    before, after = _bytes(example.before), _bytes(example.after)
    paths = _paths(example)
    sources = dict.fromkeys(paths, before) | {_TEST_FILE: example.test.encode()} if example.test != "absent" else {}
    if example.beside:
        sources[_BESIDE] = example.beside.encode()
    changes = tuple(FileChange(path=path, before=before, after=after) for path in paths)
    start, end, new_end = changed_span(before, after)
    splice = Splice(start=start, end=end, text=after[start:new_end])
    edits = tuple(Edit(path=p, splices=(splice,), operator="example", line=1, end_line=1, prior=0.0) for p in paths)
    return _rules(
        list(chain.review(Candidate(number=1, patch=Patch(changes=changes), edits=edits, cost=0.0), baseline, sources))
    )


def in_patch(gates: PatchGates, example: RuleExample) -> set[str]:
    """The rules that fire on an example that is a patch of anybody's."""
    entries = [_entry(example, path) for path in _paths(example)]
    if example.test:
        test = RuleExample(before="", after=example.test, path=_TEST_FILE, modes=":100644")
        entries.append(_entry(test, _TEST_FILE))
    if example.gone:
        entries.append(_entry(replace(example, before=example.gone, after="", modes="100644:", source=""), _GONE))
    return _rules(gates.review(tuple(entries), everything=True))


def introduced(gate: Dangerous, code: str) -> set[str]:
    """The dangers that fire when `code` is added to an empty function."""
    body = "".join(f"    {line}\n" for line in code.splitlines())
    head = "" if "import *" not in code else code.splitlines()[0] + "\n"
    body = body.replace("    " + head, "") if head else body
    before = f"{head}def f(x):\n    pass\n"
    return in_repair(Chain([gate]), RuleExample(before=before, after=before + body))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _paths(example: RuleExample) -> tuple[RepoPath, ...]:
    """The example's path, and as many more as it wants."""
    first = RepoPath(example.path)
    return (first, *(RepoPath(f"pkg/more_{n}.py") for n in range(1, int(example.files))))


def _entry(example: RuleExample, path: RepoPath) -> TreeChange:
    source = RepoPath(example.source) if example.source else path
    modes = [FileMode(m) if m else None for m in example.modes.split(":")]
    kind = ChangeKind.RENAMED if source != path else ChangeKind.MODIFIED
    kind = ChangeKind.ADDED if modes[0] is None else ChangeKind.DELETED if modes[1] is None else kind
    return TreeChange(
        path=path,
        source=source,
        kind=kind,
        before=_bytes(example.before),
        after=_bytes(example.after),
        before_mode=modes[0],
        after_mode=modes[1],
        binary=bool(example.binary),
        alias=example.alias,
    )
