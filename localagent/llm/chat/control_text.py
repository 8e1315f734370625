"""Control texts of chat dialects (`<|im_end|>`, `[INST]`) in text from outside: made harmless, and given back.

Templates and servers do not escape what they are handed, so such a text in a file that was read would open a turn. A
mark is put behind its first character; what a model copies of it comes back without. Law, tested: unescaped(escaped(t))
is t, and escaped(t) holds no control text. Not promised: texts that a server's vocabulary has and no known dialect.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping

from localagent.text.strict_json import load

MARK = "·"
# By first character, what may follow in the known families.
_FAMILIES = {
    "<": r"\|[\w.\-/ ]{1,48}\|?>|\uff5c[\w.\u2581\-/ ]{1,48}\uff5c>|[\w.\-]{1,48}\|>"
    r"|/?s>|(?:start|end)_of_turn>|[be]os>|pad>|unk>"
    r"|\|[A-Z_]{1,48}\|\w{0,32}\|>|SPECIAL_\d{1,4}>",
    r"\[": r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CONTENT|THINK|MODEL_SETTINGS)\]"
    r"|(?:TOOL_CALLS|CALL_ID|ARGS)\]",
}


class ControlTexts:
    """Those of the known families, and `texts`."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        rests = {first: [some] for first, some in _FAMILIES.items()}
        for text in sorted({text for text in texts if len(text) > 1 and text.strip()}):
            rests.setdefault(re.escape(text[0]), []).append(re.escape(text[1:]))
        table = {first: "|".join(some) for first, some in rests.items()}
        self._bare, self._marked = _pattern(table, ""), _pattern(table, MARK)

    def escaped(self, text: str) -> str:
        """Without any text that the vocabulary would read as its own."""
        return self._bare.sub(lambda found: found[0] + MARK, text)

    def unescaped(self, text: str) -> str:
        """What `escaped` was given."""
        return self._marked.sub(lambda found: found[0][: -len(MARK)], text)

    def unescaped_json(self, text: str) -> str:
        """The same for the strings of a JSON text, which may spell the mark as an escape; else it stays as it is."""
        try:
            value = load(text.encode("utf-8", "replace"))
            given = mapped_texts(value, self.unescaped)
        except (ValueError, RecursionError):
            return self.unescaped(text)
        return text if given == value else json.dumps(given, ensure_ascii=False)


def mapped_texts(value: object, change: Callable[[str], str]) -> object:
    """A JSON value with each string of it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): mapped_texts(item, change) for key, item in value.items()}
    return [mapped_texts(item, change) for item in value] if isinstance(value, list) else value


def _pattern(table: Mapping[str, str], mark: str) -> re.Pattern[str]:
    return re.compile("|".join(f"{first}{mark}(?={MARK}*(?:{rests}))" for first, rests in table.items()))
