"""What a patch that passes every check may lack: the model is told once of each kind, then a person decides."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pathspec

from localagent.app.agent.demands.changed_tree import ChangedTree
from localagent.app.agent.demands.unmet_demands import unanswered_demands
from localagent.app.agent.idle_statements import idle_statements
from localagent.app.agent.request import DoRequest
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.unasked_changes import code_beside_text, unasked_changes
from localagent.app.agent.untested_code import untested
from localagent.app.agent.unused_additions import unused_additions
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.verification import UnrunCode, Verification, VerifyVerdict
from localagent.gate.instructed_tests import changes_tests
from localagent.gate.tests.inventory import rewritten_tests
from localagent.gate.tests.weak_tests import weak_tests
from localagent.repo.top_level_modules import importable_names

_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortfall:
    """What is lacking, and what to do about it. `kind`: each is told once."""

    kind: str
    what: str
    remedy: str


def shortfalls(
    found: Verification,
    writes: Mapping[RepoPath, str | None],
    request: DoRequest,
    tree: SnapshotTree,
    policy: Policy,
    refused: Sequence[RepoPath],
) -> Iterator[Shortfall]:
    """Of a patch that was verified, the worst first. `refused`: files that stand as they were, or in part, for that.

    Tests among them count where the instruction names them: else what passes without passes as well.
    """
    tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
    texts = {path: text.encode() for path, text in writes.items() if text is not None}
    before = {path: tree.read(path) for path in texts}
    own = {path: text for path, text in texts.items() if not tests.match_file(path.lower())}
    if stale := _unturned(found, writes, tree, request.instruction):
        what = f"{stale} was changed, and passes without the change, too"
        yield Shortfall(kind="turned", what=what, remedy="assert what the instruction asks for, or leave it as it was")
    is_test = lambda path: tests.match_file(path.lower())  # noqa: E731
    asked = _unanswered(writes, texts, request.instruction, tree, is_test)
    if missed := _untested(found, texts, request):
        answers = not asked and bool(_unanswered({}, {}, request.instruction, tree, is_test))
        kind = "spoken" if answers else "test"  # all that the words ask for is there now, and was not
        yield Shortfall(kind=kind, what=f"no test runs {_shown(missed)}", remedy="add a test that runs and checks it")
    if lacking := [path for path in refused if path in request.instruction or not tests.match_file(path.lower())]:
        place = " there" if lacking[0] in writes else ""
        what = f"{lacking[0]} was to be changed, that was refused, and it is as it was{place}"
        remedy = "change it in a way that may be, or call finish if it is to stay"
        yield Shortfall(kind="part" if place else "change", what=what, remedy=remedy)
    if asked:
        more = f", and {len(asked) - _NAMED} more" if len(asked) > _NAMED else ""
        what = f"the instruction asks for {'; '.join(asked[:_NAMED])}{more}, and nothing in the change answers that"
        yield Shortfall(
            kind="demand", what=what, remedy="add it, and a test that shows it, or call finish if it is there"
        )
    sources = {path: text for path, text in texts.items() if path.is_python}
    if idle := [what for path, text in sources.items() for what in idle_statements(path, before[path] or b"", text)]:
        yield Shortfall(kind="effect", what=f"a statement without effect: {idle[0]}", remedy="take it out")
    code = {path: text for path, text in own.items() if path.is_python}
    rest = (tree.read(path) or b"" for path in tree.paths if path not in writes)
    others = itertools.chain((text for path, text in texts.items() if path not in code), rest)
    if spare := unused_additions(before, code, others, request.instruction):
        what = f"nothing uses {spare[0]}, and the instruction does not name it"
        yield Shortfall(kind="use", what=what, remedy="use it, or take it out")
    deleted = {path: tree.read(path) for path, text in writes.items() if text is None}
    if beside := unasked_changes({**before, **deleted}, own, request.instruction):
        what = f"{beside[0]} is altered, and nothing in the instruction speaks of it"
        yield Shortfall(kind="place", what=what, remedy="leave it as it was, or call finish if it has to be so")
    if beside := code_beside_text(before, code, request.instruction):
        what = f"{beside[0]} differs as code, and the instruction asks for text or annotations alone"
        yield Shortfall(kind="text", what=what, remedy="leave the code as it was, or call finish if it has to be so")
    if weak := list(_weak(before, sources, importable_names(Path(tree.snapshot.store)))):
        yield Shortfall(kind="weak", what=f"a new test shows nothing: {weak[0]}", remedy="mend it, or take it out")


def _unanswered(
    writes: Mapping[RepoPath, str | None],
    texts: Mapping[RepoPath, bytes],
    instruction: str,
    tree: SnapshotTree,
    is_test: Callable[[RepoPath], bool],
) -> tuple[str, ...]:
    """What the instruction asks for and the change lacks; every file that it leaves as it was may be read for that."""
    before = {path: tree.read(path) for path in writes}
    rest = [path for path in tree.paths if path not in writes]
    return unanswered_demands(instruction, ChangedTree(before, texts, rest, tree.read, is_test))


def _weak(
    before: Mapping[RepoPath, bytes | None], sources: Mapping[RepoPath, bytes], own: frozenset[str]
) -> Iterator[str]:
    """Tests that a change brings and that show nothing, whatever the code does."""
    for path, text in sources.items():
        if path.name.startswith("test_") or path.name.endswith("_test.py"):
            old = before[path]
            stood = {w.name for w in weak_tests(old, own)} if old is not None else set()
            yield from (f"{path} {w}" for w in weak_tests(text, own) if w.name not in stood)


def _untested(found: Verification, texts: Mapping[RepoPath, bytes], request: DoRequest) -> list[UnrunCode]:
    """What no test ran and has to be; tests that the user named and that turned are all that was asked for."""
    if found.verdict is VerifyVerdict.VERIFIED and request.tests:
        return []
    return untested(found.unrun, [text.decode() for path, text in texts.items() if path.is_python], request.instruction)


def _unturned(found: Verification, writes: Mapping[RepoPath, str | None], tree: SnapshotTree, instruction: str) -> str:
    """A test that was rewritten because tests are to change, in a file where none shows the change; "" for none."""
    if not changes_tests(instruction) or found.full is None:
        return ""
    turned = {test.partition("::")[0] for test in found.full.fail_to_pass}
    stood = {path: (tree.read(path) or b"").decode("utf-8", "replace") for path in writes}
    rewritten = (
        rewritten_tests(path, stood[path], text)
        for path, text in writes.items()
        if text is not None and path not in turned
    )
    return next(iter(sorted(test for tests in rewritten for test in tests)), "")


def _shown(missed: Sequence[UnrunCode]) -> str:
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return ", ".join(map(str, missed[:_NAMED])) + more
