"""The edit that a report of an undefined name suggests where another file or the library has that name."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.failure_hints import undefined
from localagent.edit.layout import before
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator


@operator("missing-import", prior=1.4, effects={EditEffect.MENDS_NAME, EditEffect.EXPLAINED})
def missing_import(ctx: OperatorContext) -> Iterator[Change]:
    """An undefined name is imported inside the function, from a module of the project or the standard library."""
    from localagent.code.builtin_types import IMPORTS  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failing_with("NameError"):
        name = undefined(failure)
        sources = [facts.imports[name] for facts in ctx.nearby if name in facts.imports]
        for s in ctx.unit.statements:
            if not isinstance(s.node, cst.FunctionDef) or s.suite.owner is not None or not s.suites[0].statements:
                continue
            first = s.suites[0].statements[0]
            uses = any(e.text == name for e in ctx.unit.exprs if isinstance(e.node, cst.Name))
            if not uses or not first.alone or s.suites[0].inline:
                continue
            for place, origin in enumerate(dict.fromkeys([*sources, *IMPORTS.get(name, ())])):
                module, _, member = origin.partition(":")
                if module.startswith("."):
                    line = f"from {module} import {member}"
                elif member:
                    line = f"from {module} import {member}" + (f" as {name}" if member != name else "")
                else:
                    line = f"import {module}" + (f" as {name}" if module.split(".")[0] != name else "")
                yield ctx.splice(first, before(ctx, first, line), delta=0.6 - 0.1 * place, note=line)
