"""A function's outline: its header, and below it what each step of its body is to do, in comments; no code yet.

A large model that first says what has to happen is then asked for a body along it. What it says is read as strictly as
code is, stands in the next question as data, and is never part of an edit.
"""

from dataclasses import dataclass

from localagent.llm.writing.reindent import dedented
from localagent.llm.writing.reply_parser import PromptView, defined, fenced, text_of

OUTLINE_TOKENS = 160
OUTLINES = 3  # drawn at once; the likeliest that is one is taken
MOST_STEPS = 24
OUTLINE_GRAMMAR = (
    'root ::= [ \\t]* ("def " | "async def ") [^`\\n]* "\\n" step+ "```"\nstep ::= [ \\t]* "#" [^`\\n]* "\\n"\n'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """What a model means to write."""

    text: str


def outline_of(reply: bytes, view: PromptView) -> Outline | str:
    """The outline that a reply is, or why it is refused."""
    text, why = text_of(reply)
    code = fenced(text)
    if why or code is None:
        return why or "the outline must be one fenced block"
    header, *steps = [line for line in dedented(code).split("\n") if line.strip()] or [""]
    if not all(step.lstrip().startswith("#") for step in steps) or not 0 < len(steps) <= MOST_STEPS:
        return f"the outline must be the function's header and 1 to {MOST_STEPS} comments, nothing else"
    if view.function is None:
        return "what was shown is not one function"
    stretch = view.function
    old = view.page.text[stretch.start : stretch.end].decode("utf-8")
    wanted = defined(dedented(stretch.indent + old))
    if wanted is None or defined(f"{header}\n    pass\n") != wanted:
        return f"the outline must be of {wanted[0] if wanted else 'the function'}"
    return Outline(text="\n".join([header, *("    " + step.strip() for step in steps)]))
