"""Which failures of a baseline no edit of the sources could mend, what is missing, and how to bring it in.

Judged by exception, message and the innermost frame in the repository, and by what the project declares. A failure that
no rule explains is the code's, and searched. Not promised: that a cause which the code hides (an `except` that goes on)
is found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from localagent.domain.outcome import Baseline, CauseKind, Failure, FailureCause
from localagent.errors import AnswerIsNo
from localagent.report import repair_reasons
from localagent.verify.baseline.environment_causes import (
    by_message,
    forbidden_path,
    hint,
    large_file,
    missing_data,
    missing_database,
    missing_variable,
    python_version,
    refused_call,
    service,
)
from localagent.verify.baseline.failed_project import FoundCause, Project
from localagent.verify.baseline.module_causes import missing_metadata, missing_module, missing_name, other_version
from localagent.verify.baseline.plugin_causes import (
    broken_test,
    clashing_options,
    django,
    linter_item,
    missing_plugin,
    same_name,
)


def with_causes(baseline: Baseline, project: Project) -> Baseline:
    """The baseline whose `failing` are those of the code, and `causes` say why the others fail."""
    found: dict[tuple[CauseKind, str], tuple[FoundCause, list[str]]] = {}
    for name, failure in _failures(baseline):
        if cause := cause_of(failure, project):
            found.setdefault((cause.kind, cause.subject), (cause, []))[1].append(name)
    causes = tuple(
        FailureCause(
            kind=cause.kind,
            subject=cause.subject,
            sentence=cause.sentence,
            remedy="; ".join(
                filter(None, (project.environment.install(cause.install) if cause.install else "", cause.remedy))
            ),
            failing=tuple(names),
        )
        for cause, names in found.values()
    )
    explained = {name for cause in causes for name in cause.failing}
    return replace(baseline, failing=tuple(n for n in baseline.failing if n not in explained), causes=causes)


def without_missing_modules(baseline: Baseline, project: Project, made: frozenset[str] = frozenset()) -> Baseline:
    """The baseline without test files that themselves import a package which is not there, for comparing two trees.

    `made`: modules that the second tree has; files that lack one of these are to be collected there. AnswerIsNo where
    no test is left.
    """
    known = with_causes(baseline, project)
    left = tuple(
        name
        for cause in known.causes
        if cause.kind in (CauseKind.MISSING_MODULE, CauseKind.SIBLING_PACKAGE) and cause.subject not in made
        for name in cause.failing
        if (failure := baseline.collect_failures.get(name)) is not None
        and (not failure.frames or f"collect:{failure.frames[-1].path}" == name)
    )
    if left and len(left) == len(baseline.collect_failures) and not baseline.tests and not baseline.checks:
        raise AnswerIsNo(repair_reasons.not_searched(known.causes), remedy=repair_reasons.causes_remedy(known.causes))
    return replace(
        baseline,
        failing=tuple(name for name in baseline.failing if name not in left),
        notes=(*baseline.notes, *cause_notes(known.causes)) if left else baseline.notes,
    )


def cause_notes(causes: Sequence[FailureCause]) -> tuple[str, ...]:
    """A remark on each cause: what fails for it is not searched."""
    return tuple(
        f"not searched: {', '.join(cause.failing[:3])}"
        + (f" and {len(cause.failing) - 3} more" if len(cause.failing) > 3 else "")
        + f": {cause.sentence}; {cause.remedy}"
        for cause in causes
    )


def hints(baseline: Baseline, project: Project) -> tuple[str, ...]:
    """Remarks on failures that are searched, and that may all the same have to do with where the tests run."""
    found = (hint(failure, project) for name, failure in _failures(baseline) if name in baseline.failing)
    return tuple(dict.fromkeys(filter(None, found)))


def _failures(baseline: Baseline) -> Iterator[tuple[str, Failure]]:
    known = {test.id: test.failure for test in baseline.tests} | dict(baseline.collect_failures)
    for name in baseline.failing:
        if failure := known.get(name):
            yield name, failure


def cause_of(failure: Failure, project: Project) -> FoundCause | None:
    """The cause of a failure that no edit could mend; None for one that is searched."""
    return next((found for rule in _RULES if (found := rule(failure, project)) is not None), None)


_RULES: tuple[Callable[[Failure, Project], FoundCause | None], ...] = (
    other_version,
    missing_module,
    missing_metadata,
    python_version,
    broken_test,
    missing_name,
    missing_plugin,
    linter_item,
    same_name,
    clashing_options,
    django,
    missing_data,
    large_file,
    missing_database,
    forbidden_path,
    refused_call,
    missing_variable,
    by_message,
    service,
)
