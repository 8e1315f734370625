"""What an exception usually means, and which name it is about: a table over types and messages of CPython 3.8 to 3.14.

Facts of the language, not guesses about a program: each row says what must have been so for the message to appear.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """`sentence` says what must have been so; `names` are names that the message is about; `look` is where to look."""

    sentence: str
    look: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    type: str
    message: re.Pattern[str]
    sentence: str
    look: str


def _row(kind: str, message: str, sentence: str, look: str) -> _Row:
    return _Row(type=kind, message=re.compile(message, re.DOTALL), sentence=sentence, look=look)


_N = r"['\"`]?(?P<name>[\w.]{1,200})['\"`]?"
_ROWS = (
    _row(
        "AttributeError",
        r"partially initialized module " + _N + r" .*circular import",
        "Two modules import each other: `{name}` was used before the whole of it had run.",
        "the imports at the top of both modules; import the module instead of its names, or inside the function",
    ),
    _row(
        "ImportError",
        r"cannot import name " + _N + r" from partially initialized module",
        "Two modules import each other: `{name}` was asked for before the line that makes it had run.",
        "the imports at the top of both modules; import inside the function that needs it",
    ),
    _row(
        "ImportError",
        r"cannot import name " + _N + r" from " + r"['\"](?P<other>[\w.]+)['\"]",
        "The module `{other}` was found, and it has no `{name}`.",
        "whether the name was moved or renamed, and which file is imported under that name",
    ),
    _row(
        "ImportError",
        r"cannot import name " + _N,
        "The module was found, and it has no `{name}`.",
        "whether the name was moved or renamed",
    ),
    _row(
        "ModuleNotFoundError",
        r"No module named " + _N,
        "No module of the name `{name}` was found on the import path.",
        "whether it is installed in this environment, misspelled, or needs the project's folder on the path",
    ),
    _row(
        "ImportError",
        r"attempted relative import",
        "The file was run as a script or outside its package, so its relative imports have nothing to be relative to.",
        "how it is started: run it with `python -m package.module`",
    ),
    _row(
        "AttributeError",
        r"'NoneType' object has no attribute " + _N,
        "What stands in front of `.{name}` was None.",
        "where that value comes from: a function without `return` on some way, a search that found "
        "nothing, a default of None",
    ),
    _row(
        "AttributeError",
        r"module " + _N + r" has no attribute ['\"](?P<other>\w+)['\"]",
        "The module `{name}` was imported, and has no `{other}`.",
        "spelling and version; a file of the same name in the project hides the real module",
    ),
    _row(
        "AttributeError",
        r"type object " + _N + r" has no attribute ['\"](?P<other>\w+)['\"]",
        "The class `{name}` has no `{other}`; the class was asked, not an object of it.",
        "whether an object was meant, and the spelling",
    ),
    _row(
        "AttributeError",
        r"'(?P<other>[\w.]+)' object has no attribute " + _N,
        "The value in front of `.{name}` is of type `{other}`, which has no such attribute.",
        "whether the value is of another type than expected, the attribute is misspelled, or `__init__` "
        "has not set it yet",
    ),
    _row(
        "AttributeError",
        r"can't set attribute|has no setter",
        "The attribute is a property that can be read only.",
        "the class: write to the field behind the property, or give it a setter",
    ),
    _row(
        "KeyError",
        r".*",
        "The mapping was asked for the key {message} and does not hold it.",
        'where the mapping is filled, how the key is spelled and of which type it is (`1` is not `"1"`)',
    ),
    _row(
        "IndexError",
        r"pop from (?:an )?empty",
        "Something was taken from an empty list or deque.",
        "the condition of the loop around it, and who should have filled it",
    ),
    _row(
        "IndexError",
        r"(?:list|tuple|string|bytes|bytearray|array)(?: assignment)? index out of range",
        "The index is not smaller than the length, or it is too far below zero.",
        "bounds of the loop (`range(len(x) + 1)`, `i + 1`), and whether the sequence may be empty",
    ),
    _row(
        "IndexError",
        r".*",
        "A position was asked for that the sequence does not have.",
        "bounds of the loop, and whether the sequence may be empty",
    ),
    _row(
        "UnboundLocalError",
        r".*variable " + _N,
        "`{name}` is assigned somewhere in this function, so it is local everywhere in it, and on this "
        "way nothing had assigned it yet.",
        "a branch or loop that assigns it and was not taken; or a missing `global`/`nonlocal`",
    ),
    _row(
        "NameError",
        r"free variable " + _N,
        "The inner function uses `{name}` of the function around it before that was assigned.",
        "the order of the statements in the outer function",
    ),
    _row(
        "NameError",
        r"name " + _N + r" is not defined",
        "Nothing that this code can see is called `{name}`.",
        "spelling, a missing import, or a name that is defined only in another branch or scope",
    ),
    _row(
        "TypeError",
        r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<name>.+)",
        "The call leaves out {name}.",
        "the call against the `def` line; a call on the class instead of an object also loses `self`",
    ),
    _row(
        "TypeError",
        r"takes (?:from )?(?P<other>\d+)(?: to \d+)? positional arguments? but (?P<name>\d+) (?:was|were) given",
        "The call gives {name} positional arguments where {other} fit (a method's `self` counts).",
        "the call against the `def` line; a method without `self`",
    ),
    _row(
        "TypeError",
        r"got an unexpected keyword argument " + _N,
        "The function has no parameter `{name}`.",
        "the `def` line: spelling, or a version that does not know it",
    ),
    _row(
        "TypeError",
        r"got multiple values for (?:keyword )?argument " + _N,
        "`{name}` was given twice: by position and by name.",
        "the call: a missing `self`, or a positional argument too many",
    ),
    _row(
        "TypeError",
        r"'NoneType' object is not (?P<name>subscriptable|iterable|callable|an iterator)",
        "None was used where something {name} is needed.",
        "where that value comes from: a function without `return` on some way, a search that found nothing",
    ),
    _row(
        "TypeError",
        r"'(?P<name>[\w.]+)' object is not callable",
        "A value of type `{name}` was called like a function.",
        "a name that hides a function, a missing operator before a bracket, or a property used as a method",
    ),
    _row(
        "TypeError",
        r"'(?P<name>[\w.]+)' object is not subscriptable",
        "A value of type `{name}` has no items to take with `[...]`.",
        "whether a call was meant, or a list was expected and one value came",
    ),
    _row(
        "TypeError",
        r"'(?P<name>[\w.]+)' object is not iterable|cannot unpack non-iterable (?P<other>[\w.]+)",
        "A single value was used where several are needed.",
        "what the function on the right returns on this way",
    ),
    _row(
        "TypeError",
        r"unsupported operand type\(s\) for (?P<name>.+?): '(?P<other>[\w.]+)' and '(?P<third>[\w.]+)'",
        "`{name}` does not work between the types `{other}` and `{third}`.",
        "where the value of the unexpected type comes from: text that was not converted, None, a tuple "
        "from a stray comma",
    ),
    _row(
        "TypeError",
        r"can only concatenate (?P<name>\w+) \(not \"(?P<other>[\w.]+)\"\)|must be str, not (?P<third>\w+)",
        "Text (or a list) was joined with a value of another type.",
        "convert the value, or format it into the text",
    ),
    _row(
        "TypeError",
        r"'(?P<name>[<>=!]+)' not supported between instances of '(?P<other>[\w.]+)' and '(?P<third>[\w.]+)'",
        "A `{other}` was compared with a `{third}`, which have no order between them.",
        "None or text among numbers; the key of a sort",
    ),
    _row(
        "TypeError",
        r"unhashable type: '(?P<name>[\w.]+)'",
        "A `{name}` was used as a key or put into a set; it can change, so it may not be.",
        "make it a tuple or frozenset, or use one of its fields as the key",
    ),
    _row(
        "TypeError",
        r"'(?P<name>[\w.]+)' object does not support item assignment",
        "A `{name}` cannot be changed in place.",
        "build a new one, or use a list or dict",
    ),
    _row(
        "TypeError",
        r"not JSON serializable",
        "A value was given to JSON that it has no form for.",
        "dates, sets, bytes, objects: convert them, or give `default=`",
    ),
    _row(
        "TypeError",
        r"(?:list|tuple|string) indices must be integers",
        "A sequence was asked by something that is no whole number.",
        "a dict was expected and a list came (often data one level too high), or `/` gave a float",
    ),
    _row(
        "TypeError",
        r"Can't instantiate abstract class " + _N,
        "The class `{name}` leaves methods of its abstract base undone.",
        "the method names in the message, and their spelling in the class",
    ),
    _row(
        "TypeError",
        r"coroutine|'async|asynchronous",
        "A coroutine was used as if it were its result.",
        "a missing `await`",
    ),
    _row(
        "ValueError",
        r"not enough values to unpack \(expected (?P<name>.+?), got (?P<other>\d+)\)",
        "{name} names were to be filled, and {other} values came.",
        "what the right side holds on this way",
    ),
    _row(
        "ValueError",
        r"too many values to unpack \(expected (?P<name>\d+)",
        "{name} names were to be filled, and more values came.",
        "what the right side holds on this way; iterating over a dict gives only its keys",
    ),
    _row(
        "ValueError",
        r"invalid literal for int\(\) with base \d+: (?P<name>.+)",
        "The text {name} is no whole number.",
        "where the text comes from: blanks, an empty field, a float",
    ),
    _row(
        "ValueError",
        r"could not convert string to float: (?P<name>.+)",
        "The text {name} is no number.",
        "where the text comes from: an empty field, a comma for the point",
    ),
    _row(
        "ValueError",
        r"is not in list|x not in list|substring not found",
        "Something was looked for with `index` or `remove` and is not there.",
        "whether it may be missing: ask with `in` first, or use `find`",
    ),
    _row(
        "ValueError",
        r"Circular reference",
        "The data contains itself.",
        "where an object is put into its own list or dict",
    ),
    _row(
        "ValueError",
        r"(?:min|max)\(\) .*empty|max\(\) iterable argument is empty",
        "The smallest or largest of nothing was asked for.",
        "whether the sequence may be empty: give `default=`",
    ),
    _row(
        "ValueError",
        r"I/O operation on closed file",
        "The file was closed before this line used it.",
        "what is used after the `with` block, lazily read iterators among it",
    ),
    _row(
        "ZeroDivisionError",
        r".*",
        "The divisor was zero.",
        "where the divisor comes from: an empty list's length, a difference of equal values",
    ),
    _row(
        "RecursionError",
        r".*",
        "Functions called each other until the stack was full.",
        "the function whose frames repeat: its end condition, and whether each call comes nearer to it",
    ),
    _row(
        "StopIteration",
        r".*",
        "`next` was asked of an iterator that had nothing left.",
        "whether it may be empty: give `next` a default",
    ),
    _row(
        "RuntimeError",
        r"generator raised StopIteration",
        "A `next` inside a generator found nothing left, which Python does not let out as an end.",
        "catch it there and `return`",
    ),
    _row(
        "RuntimeError",
        r"(?:dictionary|Set|OrderedDict|deque) (?:changed|keys changed|mutated).*iteration",
        "A dict or set was changed while a loop went over it.",
        "loop over a copy (`list(x)`), or collect the changes first",
    ),
    _row(
        "RuntimeError",
        r"event loop is (?:already running|closed)|no running event loop",
        "Asyncio was asked in the wrong place: the event loop runs already, is closed, or does not run.",
        "where `asyncio.run` is called",
    ),
    _row(
        "RuntimeError",
        r"cannot schedule new futures",
        "Work was given to an executor that was shut down.",
        "what still runs after the `with` block or at exit",
    ),
    _row(
        "Failed",
        r"\[XPASS\(strict\)\]",
        "The test is marked `xfail(strict=True)`, which expects it to fail, and it passed.",
        "whether the fault that the mark speaks of is gone: then the mark can go, too",
    ),
    _row(
        "TimeLimit",
        r"wall",
        "The test waited, or did not come to its turn, until its time was over.",
        "what it waits for at the last frame: a lock, a queue, a child process, the network (the jail has none)",
    ),
    _row(
        "TimeLimit",
        r".*",
        "The test computed until its time was over and was stopped.",
        "the loop around the last frame: what ends it, and whether each round comes nearer to that",
    ),
    _row(
        "Crash",
        r"signal 6\b",
        "Something called abort: `os.abort`, or machine code that found its own state broken.",
        "the last frame, and what extension modules or ctypes do there",
    ),
    _row(
        "Crash",
        r"signal (?:11|7)\b",
        "Machine code touched memory that is not there; Python code alone hardly does that.",
        "calls of extension modules or ctypes at the last frame, and endless recursion through C",
    ),
    _row(
        "Crash",
        r"signal 9\b",
        "The process was killed from outside, most often because it took more memory than it may.",
        "what grows without bound",
    ),
    _row(
        "InterpreterExit",
        r".*",
        "The process ended at once, without an exception and without cleaning up.",
        "calls of `os._exit`, and of C code that exits",
    ),
    _row(
        "AssertionError",
        r".*",
        "A condition that was stated to hold did not.",
        "the two sides of the comparison, and what computed the one that is wrong",
    ),
    _row(
        "NotImplementedError",
        r".*",
        "A method was called that its class leaves to be written.",
        "which subclass was expected to have it",
    ),
    _row(
        "UnicodeDecodeError",
        r"'(?P<name>[\w-]+)' codec can't decode",
        "Bytes were read as {name} that are not.",
        "the encoding of the file, and `encoding=` where it is opened",
    ),
    _row(
        "UnicodeEncodeError",
        r"'(?P<name>[\w-]+)' codec can't encode",
        "Text holds a character that {name} cannot write.",
        '`encoding="utf-8"` where it is written',
    ),
    _row(
        "FileNotFoundError",
        r".*",
        "There is no file of that path, seen from the working directory at that time.",
        "a path relative to another folder, and whether the file is made before",
    ),
    _row(
        "IsADirectoryError",
        r".*",
        "A directory was opened as a file.",
        "the path, and an empty name joined to a folder",
    ),
    _row(
        "PermissionError",
        r".*",
        "The system does not allow this to the account that runs it.",
        "owner and mode of the file, and who runs the program",
    ),
    _row(
        "ConnectionRefusedError",
        r".*",
        "Nothing listens at that address and port.",
        "whether the service runs, and which address is configured",
    ),
    _row(
        "TimeoutError",
        r".*",
        "An answer did not come in the time that was given.",
        "the service at the other end, and the time limit",
    ),
    _row(
        "IndentationError",
        r".*",
        "The indentation of the line fits no block around it.",
        "tabs and spaces mixed, or a block without a body",
    ),
    _row(
        "TabError",
        r".*",
        "Tabs and spaces are mixed in the indentation.",
        "convert the file's tabs to spaces",
    ),
    _row(
        "SyntaxError",
        r".*was never closed",
        "A bracket or text was opened there and never closed.",
        "that line and the lines after it",
    ),
    _row(
        "SyntaxError",
        r"cannot assign to|Maybe you meant '=='",
        "The left side of `=` is nothing that can be assigned.",
        "`==` for a comparison",
    ),
    _row(
        "SyntaxError",
        r"'(?P<name>return|yield|await|break|continue)' outside",
        "`{name}` stands where it may not.",
        "the indentation of the line",
    ),
    _row(
        "SyntaxError",
        r".*",
        "Python could not read the file: the error is at that place or shortly before it.",
        "brackets, colons and quotes of that line and the line above; the Python version",
    ),
    _row(
        "MemoryError",
        r".*",
        "There was no memory left.",
        "what grows without bound, or a size that was read from data",
    ),
    _row(
        "OverflowError",
        r".*",
        "A number was too large for its representation.",
        "where the number comes from",
    ),
    _row(
        "KeyboardInterrupt",
        r".*",
        "Somebody ended the program, or it hung and was ended.",
        "the innermost line: it is where it was waiting or looping",
    ),
    _row(
        "SystemExit",
        r".*",
        "The program ended itself.",
        "the call of `sys.exit`, and the status it was given",
    ),
    _row(
        "CancelledError",
        r".*",
        "An asyncio task was cancelled while it waited.",
        "who cancelled it: a timeout, a task group whose other task failed",
    ),
    _row(
        "FixtureLookupError",
        r"fixture " + _N + r" not found",
        "The test asks for a fixture `{name}` that pytest does not find.",
        "spelling, the `conftest.py` it should be in, a missing plugin",
    ),
    _row(
        "ExceptionGroup",
        r".*",
        "Several exceptions were raised together.",
        "the members: each has its own frames",
    ),
    _row(
        "BaseExceptionGroup",
        r".*",
        "Several exceptions were raised together.",
        "the members: each has its own frames",
    ),
    _row(
        "JSONDecodeError",
        r".*",
        "The text is not JSON from that character on.",
        "what was really received: an empty answer, an HTML page",
    ),
    _row(
        "InvalidOperation",
        r".*",
        "A decimal was made from text that is no number.",
        "where the text comes from",
    ),
    _row(
        "IntegrityError",
        r".*",
        "The database refused a row that breaks one of its rules.",
        "the constraint in the message: a duplicate, a missing reference, NULL",
    ),
    _row(
        "OperationalError",
        r"no such table",
        "The table is not there.",
        "whether the migrations ran on this database",
    ),
    _row(
        "DoesNotExist",
        r".*",
        "A query for exactly one row found none.",
        "the filter, and whether the row may be missing",
    ),
    _row(
        "MultipleObjectsReturned",
        r".*",
        "A query for exactly one row found several.",
        "the filter, and a missing constraint",
    ),
)


def meaning_of(kind: str, message: str) -> Meaning | None:
    """What an exception of a type with such a message usually means; None for one that is not in the table."""
    bare = kind.rsplit(".", 1)[-1]
    for row in _ROWS:
        if row.type != bare:
            continue
        found = row.message.search(message[:2_000])
        if found is not None:
            groups = {name: value or "" for name, value in found.groupdict().items()}
            told = row.sentence.format(message=message[:200] or "that was given", **groups)
            names = tuple(v for k, v in groups.items() if k in ("name", "other") and v.isidentifier())
            return Meaning(sentence=told, look=row.look, names=names)
    return None
