"""An explanation as text for a person and as JSON. Control characters are the renderer's business."""

from collections.abc import Iterator
from typing import Any

from localagent.debug.explanation import Explanation, Fact

_WIDTH = 15


def explanation_text(explanation: Explanation) -> str:
    """A headline, the lines with a mark at the one that matters, then the facts in a column."""
    lines = [explanation.headline]
    if explanation.excerpt:
        lines += ["", f"  {explanation.path}", *excerpt_lines(explanation.excerpt, explanation.line)]
    if explanation.facts:
        lines += ["", *_facts(explanation.facts)]
    return "\n".join(lines)


def excerpt_lines(excerpt: tuple[tuple[int, str], ...], marked: int) -> Iterator[str]:
    """Numbered source lines, `>` in front of one."""
    width = len(str(excerpt[-1][0]))
    return (f"  {'>' if n == marked else ' '} {n:>{width}}  {text}".rstrip() for n, text in excerpt)


def _facts(facts: tuple[Fact, ...]) -> Iterator[str]:
    before = ""
    for fact in facts:
        label = fact.label if fact.label != before or len(fact.label) > _WIDTH else ""
        before = fact.label
        place = f"{fact.path}:{fact.line}" if fact.path and fact.line else str(fact.path or "")
        said = ", ".join(part for part in (place, fact.sentence) if part).replace("\n", "\n" + " " * (_WIDTH + 3))
        if len(label) > _WIDTH:
            yield f"  {label}: {said}"
        else:
            yield f"  {label:<{_WIDTH}} {said}"


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The same as JSON types."""
    return {
        "headline": explanation.headline,
        "path": explanation.path,
        "line": explanation.line,
        "excerpt": [{"line": n, "text": text} for n, text in explanation.excerpt],
        "facts": [
            {"label": f.label, "sentence": f.sentence, "path": f.path, "line": f.line} for f in explanation.facts
        ],
        "frames": [
            {
                "file": f.frame.file,
                "line": f.frame.line,
                "function": f.frame.function,
                "match": f.match.value,
                "path": f.path,
                "here": f.line,
            }
            for f in explanation.frames
        ],
    }
