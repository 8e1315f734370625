"""Names, options, values and texts of an instruction that a change does not hold."""

import builtins
import re
import sys
from collections.abc import Iterator

from localagent.app.agent.demands.changed_tree import ChangedTree
from localagent.app.agent.demands.sentences import LIST, quoted, quotes, sentences, unquoted

_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_OTHERS = re.compile(r"\b(?:git|pip|pytest|ruff|mypy|docker|make|npm|curl|python\d? -m)\b")
_IDENTIFIER = re.compile(r"(?:\w+\.)*([A-Za-z_]\w*)(\(.*\))?(?:=.*)?")
_PLACEHOLDER = re.compile(r"[A-Z]+\d*|None|True|False|\w{1,2}")
_BARE = re.compile(r"(?<![\w./-])(?:[A-Z]+(?:_[A-Z0-9]+)+|[a-z]\w*_\w+)(?![\w/=-]|\.\w)")
_KIND = re.compile(
    r"\b(?:fields?|attributes?|parameters?|keywords?|arguments?|options?|methods?|functions?|class(?:es)?|modules?"
    r"|(?:sub)?commands?|columns?|keys?|loggers?|headers?|variables?|constants?|helpers?|rules?|limits?|propert(?:y|ies)"
    r"|decorators?|errors?|name[ds]?|called|add|adds|new|takes?|gain|accepts?|raises?|introduce|renamed? (?:it )?to)\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:messages?|texts?|prints?|printed|says?|said|reasons?|errors?|stderr|standard error|as in|warnings?|logs?"
    r"|logged|logger|level)\b"
)
_OLD = re.compile(
    r"\b(?:instead of|rather than|no longer|not|today|now|currently|old|old message|even|although|wrongly)\b"
)
_BUT = re.compile(
    r"\b(?:today|currently|at the moment|but|instead|expects?|claims?|complains?|although|wrongly|ends? in)\b"
)
_WORD_OF_TEXT = re.compile(r"[a-z]{2,}")
_SETTING = re.compile(r"`([a-z_]\w*): ?[^`]+`")
_IN_JSON = re.compile(rf"\bJSON\b[^`]*\b(?:gets?|has|have|contains?|with) ({LIST})")
_GENERIC = re.compile(rb"\b(?:asdict|_asdict|__dict__|vars|getattr|model_dump|__slots__)\b")
_LEVEL = re.compile(r"\b(?:level|at) (DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")
_TO_LOG = re.compile(
    r"\blogger (?:named|called|`)|\ba logger\b|\b(?:should|must) be logged\b"
    r"|\blog (?:a|an|each|every|it|them)\b|\bat level\b"
)
_NO_LEVELS = re.compile(r"\b(?:no|not|n't) (?:\w+ ){0,3}?(?:handlers?|levels?)\b", re.IGNORECASE)
_TO_WARN = re.compile(r"\bdeprecat(?:e|ed|ion)\b", re.IGNORECASE)
_GOES = re.compile(r"\b(?:remove|drop|delete|gone|go away|goes away)\b", re.IGNORECASE)


def options(instruction: str, change: ChangedTree) -> Iterator[str]:
    """New options of a command that no source has."""
    asked = [o for text in (unquoted(instruction), *_own(instruction)) for o in _OPTION.findall(text)]
    for option in dict.fromkeys(asked):
        name = option.strip("-").replace("-", "_")
        made = rf"\b{name}\b" if re.search(r"\b(?:click|typer)\b", change.all_text) else "(?!)"
        if not change.stood(option) and not re.search(rf"{option}(?![\w-])|{made}", change.code):
            yield f"the option {option}"


def names(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Names that are new and that no source, no text has: fields, functions, settings."""
    asked = _BARE.findall(unquoted(instruction))
    for quote in quotes(instruction):
        found = _IDENTIFIER.fullmatch(quote.text)
        if found is None or (quote.text.partition(".")[0] in sys.stdlib_module_names and "." in quote.text):
            continue
        said = _KIND.search(" ".join(unquoted(quote.before).split()[-6:])) or _KIND.match(quote.after.strip())
        if said or found[2]:
            asked.append(found[1])
            asked += re.findall(r"([a-z_]\w+)\s*[=,)]", found[2] or "")
    for name in dict.fromkeys(asked):
        known = hasattr(builtins, name) or name in sys.stdlib_module_names or _PLACEHOLDER.fullmatch(name)
        if not known and name not in change.code + change.texts and not change.stood(name):
            yield f"`{name}`"


def messages(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Texts that are to be printed or raised, of whose words most are in no new string, of a test neither."""
    new = {*_WORD_OF_TEXT.findall(" ".join(change.new_texts()).lower())}
    for quote in quotes(instruction):
        if re.search(r"[()=\[\]\\\"]", quote.text) or len(quote.text.split()) < 3 or _OLD.search(quote.before[-30:]):
            continue
        if not _SAID.search(unquoted(quote.before)[-100:]):
            continue
        plain = re.sub(r"--?[\w-]+|'[^']*'|\S*[._/\d]\S*|\b[A-Z]+\b", " ", quote.text)
        words = _WORD_OF_TEXT.findall(plain)
        missing = [w for w in words if w not in new]
        if len(words) < 2 or 2 * len(missing) <= len(words):
            continue
        if not (_BUT.search(unquoted(quote.sentence)) and all(change.stood(w) for w in words)):
            yield f"the text `{quote.text}`"


def keys(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Keys of a configuration or of JSON that no source asks for or writes."""
    texts = {*change.code_strings()}
    for sentence in sentences(instruction):
        asked = _SETTING.findall(sentence) if re.search(r"\b(?:config|setting)", sentence) else []
        asked = [key for key in asked if not change.stood(f"{key}:")]
        found = _IN_JSON.search(sentence)
        if found and not any(_GENERIC.search(t) for t in (*change.after.values(), *change.rest())):
            asked += [key for key in quoted(found[1]) if key.isidentifier()]
        yield from (f"the key `{key}`" for key in asked if key not in texts)


def logs(instruction: str, change: ChangedTree) -> Iterator[str]:
    """A log, its levels and tracebacks that no new line writes; a deprecation of which none warns."""
    if _TO_LOG.search(instruction) and not re.search(r"\w*log\w*", change.code, re.IGNORECASE):
        yield "a log"
        return
    for level in dict.fromkeys(_LEVEL.findall(instruction)):
        also = r"|\.exception\(" if level == "ERROR" else r"|\.warn\(" if level == "WARNING" else ""
        if not re.search(rf"\.{level.lower()}\(|\b{level}\b{also}", change.code):
            yield f"a log at level {level}"
    if _NO_LEVELS.search(instruction) and re.search(r"\b(?:addHandler|basicConfig|setLevel|dictConfig)\(", change.code):
        yield "a log that is not configured, and it is"
    traced = [
        s for s in sentences(instruction) if re.search(r"\btraceback\b", s) and re.search(r"\b(?:log|warning|level)", s)
    ]
    if traced and not re.search(r"\.exception\(|exc_info|traceback", change.code):
        yield "a traceback in the log"
    warned = [s for s in sentences(instruction) if _TO_WARN.search(s) and not _GOES.search(s)]
    if warned and change.sources and not re.search(r"warn|deprecat", change.code, re.IGNORECASE):
        yield "a warning of what is deprecated"


def _own(instruction: str) -> Iterator[str]:
    """What stands in backticks and is no command of another program."""
    return (q.text for q in quotes(instruction) if not _OTHERS.match(q.text))
