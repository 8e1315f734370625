"""One root error, five kinds, and the exit code of each. Imports nothing.

A refusal that is an expected answer (a gate says no, a candidate fails) is a value, never one of these;
these mean that a verb could not give its answer.
"""


class LocalagentError(Exception):
    """Root of everything localagent raises on purpose.

    `remedy` says what the reader can do about it; it is shown on its own line.
    """

    exit_code = 3

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class AnswerIsNo(LocalagentError):
    """The task was understood and the answer is no: no tests, nothing plausible, needs a person."""

    exit_code = 1


class UsageFault(LocalagentError):
    """What was asked, or a policy file, is wrong. Carries every fault found, not only the first."""

    exit_code = 2

    def __init__(self, faults: list[str] | tuple[str, ...] | str, *, remedy: str = "") -> None:
        self.faults = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("; ".join(self.faults), remedy=remedy)


class InternalFault(LocalagentError):
    """A bug of ours."""

    exit_code = 3


class CannotEnforce(LocalagentError):
    """A boundary cannot be enforced (jail, gate tool or model is not sound): nothing of the repository ran."""

    exit_code = 4


class Interrupted(LocalagentError):
    """The user ended the task; jails are ended and the tree is as it was."""

    exit_code = 130
