"""Steps that are worth less than they were, since another one ran: they come later, once for each reason.

A fault that can be mended in three ways leaves three kept candidates that stop at the next fault. The likeliest edits
for that are the same on each of them, and would run three times before the next likeliest ones run once: what an edit
did on one program it most likely does on another that fails alike. And where an edit took a failure further, the other
edits of that line are wanted only if it was wrong. Not promised: that lines which read alike are one place.
"""

from localagent.domain.edit import Edit, EditEffect
from localagent.ports import Sources
from localagent.repair.search.code_equivalence import scope_of
from localagent.repair.search.search_node import Lineage, SearchStep

REPEATED = 2.0  # nats; both set by hand on development cases
EXPLAINED = 1.5


class Rivals:
    """What ran on kept candidates' programs, and which edits were kept. One task's."""

    def __init__(self) -> None:
        self._ran: dict[object, set[int]] = {}  # by what was done: ids of the parents, which `_failing` keeps alive
        self._kept: dict[int, tuple[Lineage, list[Edit]]] = {}  # by id of the parent, which is kept alive with them
        self._told: dict[tuple[float, int, int], SearchStep] = {}  # by reason and ids, which the step keeps alive
        self._failing: dict[int, tuple[Lineage, object]] = {}

    def later(self, step: SearchStep, base: Sources) -> float:
        """How much later a step comes than it cost, nats; 0.0 where that was said already. `base`: the snapshot."""
        if step.joins or EditEffect.WRITTEN_BY_MODEL in step.edit.effects:
            return 0.0
        _, kept = self._kept.get(id(step.parent), (step.parent, []))
        why = [EXPLAINED] if any(_same_line(step.edit, edit) for edit in kept) else []
        if step.parent.edits and self._ran.get(self._what(step, base), set()) - {id(step.parent)}:
            why.append(REPEATED)
        fresh = [nats for nats in why if (nats, id(step.parent), id(step.edit)) not in self._told]
        self._told |= {(nats, id(step.parent), id(step.edit)): step for nats in fresh}
        return sum(why) if fresh else 0.0

    def runs(self, step: SearchStep, base: Sources) -> None:
        """Remember a step that is run."""
        if step.parent.edits:
            self._ran.setdefault(self._what(step, base), set()).add(id(step.parent))

    def remember(self, step: SearchStep) -> None:
        """Remember a step after which a failure came later."""
        self._kept.setdefault(id(step.parent), (step.parent, []))[1].append(step.edit)

    def _what(self, step: SearchStep, base: Sources) -> object:
        """How the program fails, the lines that are edited as they stand in it, and what is done to them."""
        edit = step.edit
        source = step.parent.sources(base)[edit.path]
        low = source.rfind(b"\n", 0, edit.splices[0].start) + 1 if edit.splices else 0
        high = source.find(b"\n", edit.splices[-1].end) if edit.splices else 0
        text = source[low : high if high >= 0 else len(source)]
        done = tuple((splice.start - low, splice.end - low, splice.text) for splice in edit.splices)
        return self._fails(step.parent), scope_of(edit), text, done

    def _fails(self, parent: Lineage) -> object:
        known = self._failing.get(id(parent))
        if known is None:
            told = tuple(sorted((f.exception, f.steady) for f in parent.failures))
            known = self._failing[id(parent)] = (parent, told)
        return known[1]


def _same_line(one: Edit, other: Edit) -> bool:
    return one.path == other.path and one.line <= other.end_line and other.line <= one.end_line
