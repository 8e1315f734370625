"""A model's chat template: somebody else's Jinja program, run in a sandbox with limits, never on what it is to carry.

It is rendered on marks that stand for the messages, once for each row of roles; where a mark is lost, doubled, moved or
set in other company than text, the template is refused. Runs in the confined child only, whose jail bounds what limits
here do not see. Not promised: that the model was trained on what the template makes.
"""

import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SOURCE = 64 << 10
MAX_RENDERED = 64 << 10
MAX_SECONDS = 1.0
MAX_MORE_BYTES = 256 << 20
_DATE = "26 Jul 2024"  # one for all: a prompt must not change overnight

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class TemplateFault(Exception):  # noqa: N818
    """The template cannot be used; says why."""


class _Late(Exception):  # noqa: N818
    """Rendering took too long."""


class _Limited(ImmutableSandboxedEnvironment):
    """Without attributes of objects that a template needs none of, and without arithmetic that grows."""

    intercepted_binops = frozenset({"*", "**", "%", "//"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Small numbers only."""
        del context
        if not all(isinstance(side, int | float) and abs(side) < 1 << 20 for side in (left, right)):
            raise TemplateFault(f"the template uses {operator} on more than small numbers")
        return self.binop_table[operator](left, right) if operator != "**" else _power(left, right)


def _power(left: Any, right: Any) -> Any:
    if abs(right) > 8:
        raise TemplateFault("the template raises to a large power")
    return left**right


class ChatTemplate:
    """One template. `front` and `end` are how the first and the last token of a text are spelled."""

    def __init__(self, source: str, *, front: str, end: str) -> None:
        if len(source) > MAX_SOURCE:
            raise TemplateFault(f"the template is longer than {MAX_SOURCE} characters")
        self._source, self._front, self._end = source, front, end

    def pieces(self, roles: Sequence[str]) -> list[str | int]:
        """What stands around messages of these roles, and their numbers where they stand; the answer comes behind."""
        marks = [f"\ue0a0{number}:{len(roles)}\ue0a1" for number in range(len(roles))]
        told = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        rendered = self._rendered(told)
        pieces: list[str | int] = []
        for number, mark in enumerate(marks):
            if rendered.count(mark) != 1:
                raise TemplateFault(f"the template has message {number} {rendered.count(mark)} times, not once")
            before, _, rendered = rendered.partition(mark)
            if "\ue0a0" in before:
                raise TemplateFault("the template changes the order of messages")
            pieces += [before, number]
        pieces.append(rendered)
        if any("\ue0a0" in piece or "\ue0a1" in piece for piece in pieces if isinstance(piece, str)):
            raise TemplateFault("the template alters messages")
        return [piece for piece in pieces if piece != ""]

    def _rendered(self, messages: list[dict[str, str]]) -> str:
        environment = _Limited(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        out: list[str] = []
        size = 0
        try:
            with _bounded():
                made = environment.from_string(self._source)
                for part in made.generate(
                    messages=messages,
                    add_generation_prompt=True,
                    bos_token=self._front,
                    eos_token=self._end,
                    raise_exception=_refused,
                    strftime_now=lambda _form: _DATE,
                    date_string=_DATE,
                    enable_thinking=False,
                    tools=None,
                ):
                    size += len(part)
                    if size > MAX_RENDERED:
                        raise TemplateFault(f"the template makes more than {MAX_RENDERED} characters")
                    out.append(part)
        except TemplateFault:
            raise
        except _Late:
            raise TemplateFault(f"the template takes longer than {MAX_SECONDS:g} s") from None
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as fault:
            raise TemplateFault(f"the template fails: {type(fault).__name__}: {str(fault)[:200]}") from None
        except (MemoryError, RecursionError) as fault:
            raise TemplateFault(f"the template takes too much: {type(fault).__name__}") from None
        return "".join(out)


def _refused(why: object = "") -> NoReturn:
    raise TemplateFault(f"the template refuses: {str(why)[:200]}")


@contextmanager
def _bounded() -> Iterator[None]:
    """Only so much time and further memory inside. For the main thread of a process that renders nothing else."""

    def late(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise _Late

    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = taken + MAX_MORE_BYTES
    if limits[0] != resource.RLIM_INFINITY:
        most = min(most, limits[0])
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)
