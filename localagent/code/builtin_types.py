"""What the standard library's common types offer, and which foreign method names people mean by which of ours.

A table and `dir` of types that are always there; nothing of the repository is imported.
"""

import collections
import datetime
import io
import pathlib
from collections.abc import Mapping

_TYPES: dict[str, type] = {
    "list": list,
    "dict": dict,
    "set": set,
    "str": str,
    "tuple": tuple,
    "int": int,
    "float": float,
    "bytes": bytes,
    "bool": bool,
    "deque": collections.deque,
    "Counter": collections.Counter,
    "defaultdict": collections.defaultdict,
    "OrderedDict": collections.OrderedDict,
    "frozenset": frozenset,
    "bytearray": bytearray,
    "file": io.TextIOWrapper,
    "Path": pathlib.Path,
    "PosixPath": pathlib.Path,
    "datetime": datetime.datetime,
    "date": datetime.date,
    "timedelta": datetime.timedelta,
    "StringIO": io.StringIO,
    "BytesIO": io.BytesIO,
    "range": range,
}

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    name: tuple(a for a in dir(kind) if not a.startswith("_")) for name, kind in _TYPES.items()
}

# Attribute pairs that are confused with each other, with how often relative to the rest.
PAIRS: tuple[tuple[str, ...], ...] = (
    *(("append", "extend", "insert", "add", "appendleft"), ("pop", "popleft", "popitem", "remove", "discard")),
    *(("lower", "upper", "title", "capitalize", "swapcase", "casefold"), ("find", "index", "rfind", "rindex", "count")),
    *(("keys", "values", "items"), ("strip", "lstrip", "rstrip"), ("startswith", "endswith"), ("split", "rsplit")),
    *(("add", "update", "discard", "remove"), ("union", "intersection", "difference", "symmetric_difference")),
    *(("isdigit", "isalpha", "isalnum", "isnumeric", "isspace", "isupper", "islower"), ("floor", "ceil", "trunc")),
    *(("heappush", "heappop", "heapify", "heappushpop", "heapreplace"), ("bisect", "bisect_left", "bisect_right")),
    *(
        ("encode", "decode"),
        ("read", "readline", "readlines"),
        ("write", "writelines"),
        ("dump", "dumps", "load", "loads"),
    ),
    *(
        ("match", "search", "fullmatch", "findall", "finditer"),
        ("group", "groups"),
        ("sort", "reverse"),
        ("get", "setdefault"),
    ),
    *(("issubset", "issuperset", "isdisjoint"), ("ljust", "rjust", "center", "zfill"), ("partition", "rpartition")),
    *(("left", "right"), ("next", "prev"), ("first", "last"), ("parent", "parents"), ("name", "stem", "suffix")),
    *(
        ("most_common", "elements"),
        ("lru_cache", "cache"),
        ("split", "splitlines"),
        ("year", "month", "day"),
        ("min", "max"),
    ),
    *(("now", "utcnow", "today"), ("days", "seconds", "total_seconds"), ("copy", "deepcopy"), ("sin", "cos", "tan")),
    *(("extendleft", "extend"), ("replace", "translate"), ("is_file", "is_dir", "exists"), ("accumulate", "reduce")),
)

# Built-in callables that are confused with each other.
CALLEES: tuple[tuple[str, ...], ...] = (
    *(("min", "max"), ("any", "all"), ("sorted", "reversed"), ("list", "set", "tuple"), ("int", "float", "round")),
    *(
        ("str", "repr"),
        ("floor", "ceil"),
        ("heappush", "heappop", "heappushpop"),
        ("sum", "max", "min", "len"),
        ("ord", "chr"),
    ),
    *(
        ("isinstance", "issubclass"),
        ("getattr", "hasattr"),
        ("map", "filter"),
        ("range", "enumerate"),
        ("zip", "zip_longest"),
    ),
    *(("bisect", "bisect_left", "bisect_right"), ("dict", "defaultdict", "OrderedDict", "Counter"), ("iter", "next")),
    *(("combinations", "permutations", "product", "combinations_with_replacement"), ("deque", "list"), ("abs", "int")),
    *(("bin", "hex", "oct"), ("set", "frozenset"), ("sorted", "list", "set"), ("copy", "deepcopy"), ("gcd", "lcm")),
    *(("ValueError", "TypeError", "KeyError", "IndexError", "RuntimeError", "AttributeError"), ("open", "Path")),
    *(
        ("heapify", "heappush"),
        ("next", "iter"),
        ("len", "range"),
        ("print", "return"),
        ("sqrt", "isqrt"),
        ("type", "isinstance"),
    ),
)

# What a foreign or invented attribute usually means in Python. `{x}` is the receiver, `{a}` the arguments.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "push": ("{x}.append({a})", "heappush({x}, {a})", "heapq.heappush({x}, {a})", "{x}.add({a})"),
    "push_back": ("{x}.append({a})",),
    "add": ("{x}.append({a})", "{x}.update({a})", "{x} + {a}"),
    "append": ("{x}.add({a})", "{x} += {a}", "{x}.extend({a})", "{x}.update({a})"),
    "insert": ("{x}.append({a})", "{x}.add({a})"),
    "enqueue": ("{x}.append({a})",),
    "dequeue": ("{x}.popleft()", "{x}.pop(0)"),
    "shift": ("{x}.pop(0)", "{x}.popleft()"),
    "unshift": ("{x}.insert(0, {a})", "{x}.appendleft({a})"),
    "popleft": ("{x}.pop(0)", "{x}.pop()"),
    "pop_front": ("{x}.popleft()", "{x}.pop(0)"),
    "poll": ("{x}.pop(0)", "{x}.popleft()", "heappop({x})"),
    "peek": ("{x}[-1]", "{x}[0]"),
    "top": ("{x}[-1]", "{x}[0]"),
    "first": ("{x}[0]",),
    "last": ("{x}[-1]",),
    "length": ("len({x})",),
    "size": ("len({x})",),
    "len": ("len({x})",),
    "isEmpty": ("not {x}", "len({x}) == 0"),
    "empty": ("not {x}", "len({x}) == 0"),
    "is_empty": ("not {x}",),
    "has": ("{a} in {x}",),
    "contains": ("{a} in {x}",),
    "includes": ("{a} in {x}",),
    "has_key": ("{a} in {x}",),
    "containsKey": ("{a} in {x}",),
    "indexOf": ("{x}.index({a})", "{x}.find({a})"),
    "find": ("{x}.index({a})",),
    "toLowerCase": ("{x}.lower()",),
    "tolower": ("{x}.lower()",),
    "toUpperCase": ("{x}.upper()",),
    "toupper": ("{x}.upper()",),
    "trim": ("{x}.strip()",),
    "substring": ("{x}[{a0}:{a1}]",),
    "substr": ("{x}[{a0}:{a0} + {a1}]",),
    "charAt": ("{x}[{a}]",),
    "at": ("{x}[{a}]",),
    "get": ("{x}[{a}]",),
    "put": ("{x}[{a0}] = {a1}",),
    "set": ("{x}[{a0}] = {a1}",),
    "delete": ("{x}.remove({a})", "{x}.discard({a})", "{x}.pop({a})"),
    "removeAt": ("{x}.pop({a})",),
    "splice": ("{x}.pop({a})",),
    "concat": ("{x} + {a}",),
    "addAll": ("{x}.extend({a})", "{x}.update({a})"),
    "push_all": ("{x}.extend({a})",),
    "isAlive": ("{x}.is_alive()",),
    "tostring": ("{x}.tobytes()",),
    "fromstring": ("{x}.frombytes({a})",),
    "getchildren": ("list({x})",),
    "readfp": ("{x}.read_file({a})",),
    "iteritems": ("{x}.items()",),
    "itervalues": ("{x}.values()",),
    "iterkeys": ("{x}.keys()",),
    "toString": ("str({x})",),
    "to_s": ("str({x})",),
    "toInt": ("int({x})",),
    "reverse": ("{x}[::-1]", "reversed({x})"),
    "reversed": ("{x}[::-1]", "list(reversed({x}))"),
    "sort": ("sorted({x})", "sorted({x}, {a})"),
    "sorted": ("sorted({x})", "{x}.sort()"),
    "sum": ("sum({x})",),
    "max": ("max({x})",),
    "min": ("min({x})",),
    "forEach": ("map({a}, {x})",),
    "map": ("map({a}, {x})",),
    "filter": ("filter({a}, {x})",),
    "equals": ("{x} == {a}",),
    "equalsIgnoreCase": ("{x}.lower() == {a}.lower()",),
    "compareTo": ("({x} > {a}) - ({x} < {a})",),
    "next": ("next({x})",),
    "clone": ("{x}.copy()",),
    "random": ("random.random()",),
    "keySet": ("{x}.keys()",),
    "entrySet": ("{x}.items()",),
    "join": ("''.join({x})", "{a}.join({x})"),
    "split": ("list({x})",),
}

# Names of other languages and what stands for them here.
FOREIGN_NAMES: Mapping[str, tuple[str, ...]] = {
    "this": ("self",),
    "null": ("None",),
    "nil": ("None",),
    "undefined": ("None",),
    "true": ("True",),
    "false": ("False",),
    "NULL": ("None",),
    "INT_MAX": ("float('inf')",),
    "INT_MIN": ("float('-inf')",),
    "Infinity": ("float('inf')",),
    "inf": ("float('inf')",),
    "maxint": ("sys.maxsize",),
    "xrange": ("range",),
    "unicode": ("str",),
    "raw_input": ("input",),
    "basestring": ("str",),
    "long": ("int",),
    "size": ("len",),
    "length": ("len",),
    "strlen": ("len",),
    "sqrt": ("math.sqrt",),
    "floor": ("math.floor",),
    "ceil": ("math.ceil",),
    "arr": ("nums", "array"),
    "function": ("lambda",),
    "vector": ("list",),
    "printf": ("print",),
    "println": ("print",),
    "Exception": ("ValueError",),
}

# Where a name usually comes from, for a missing import: name -> module, or module:name.
IMPORTS: Mapping[str, tuple[str, ...]] = {
    **{m: (m,) for m in ("re", "os", "sys", "math", "json", "time", "random", "collections", "itertools", "functools")},
    **{m: (m,) for m in ("heapq", "bisect", "copy", "string", "datetime", "operator", "logging", "warnings", "types")},
    **{
        m: (m,)
        for m in ("io", "enum", "inspect", "contextlib", "typing", "shutil", "tempfile", "uuid", "decimal", "abc")
    },
    **{
        m: (m,)
        for m in ("statistics", "textwrap", "hashlib", "base64", "csv", "asyncio", "threading", "traceback", "struct")
    },
    **{n: (f"collections:{n}",) for n in ("defaultdict", "deque", "Counter", "OrderedDict", "namedtuple", "ChainMap")},
    **{
        n: (f"itertools:{n}",)
        for n in ("chain", "product", "permutations", "combinations", "islice", "groupby", "count")
    },
    **{
        n: (f"itertools:{n}",)
        for n in ("accumulate", "repeat", "cycle", "zip_longest", "takewhile", "dropwhile", "tee")
    },
    **{
        n: (f"functools:{n}",) for n in ("lru_cache", "reduce", "partial", "wraps", "cached_property", "total_ordering")
    },
    **{n: (f"functools:{n}",) for n in ("cache", "cmp_to_key", "singledispatch")},
    **{n: (f"heapq:{n}",) for n in ("heappush", "heappop", "heapify", "heapreplace", "nlargest", "nsmallest")},
    **{n: (f"bisect:{n}",) for n in ("bisect_left", "bisect_right", "insort")},
    **{
        n: (f"math:{n}",)
        for n in (
            "sqrt",
            "isqrt",
            "ceil",
            "floor",
            "gcd",
            "lcm",
            "inf",
            "pi",
            "log",
            "log2",
            "factorial",
            "comb",
            "prod",
        )
    },
    **{
        n: (f"typing:{n}",)
        for n in ("List", "Dict", "Optional", "Tuple", "Set", "Any", "Union", "Callable", "Iterable")
    },
    **{n: (f"typing:{n}",) for n in ("Iterator", "Sequence", "Mapping", "NamedTuple", "TypeVar", "Generic", "cast")},
    **{n: (f"copy:{n}",) for n in ("deepcopy",)},
    **{n: (f"dataclasses:{n}",) for n in ("dataclass", "field", "asdict", "replace")},
    **{n: (f"datetime:{n}",) for n in ("timedelta", "timezone", "date")},
    **{n: (f"pathlib:{n}",) for n in ("Path", "PurePath", "PurePosixPath")},
    **{n: (f"decimal:{n}",) for n in ("Decimal",)},
    **{n: (f"fractions:{n}",) for n in ("Fraction",)},
    **{n: (f"enum:{n}",) for n in ("Enum", "IntEnum", "auto", "Flag")},
    **{n: (f"contextlib:{n}",) for n in ("contextmanager", "suppress", "ExitStack", "closing", "nullcontext")},
    **{n: (f"operator:{n}",) for n in ("itemgetter", "attrgetter")},
    **{n: (f"string:{n}",) for n in ("ascii_lowercase", "ascii_uppercase", "ascii_letters", "digits", "punctuation")},
    **{n: (f"abc:{n}",) for n in ("ABC", "abstractmethod")},
    **{n: (f"io:{n}",) for n in ("StringIO", "BytesIO")},
    **{n: (f"textwrap:{n}",) for n in ("dedent",)},
}

# Keywords that common callables take, with usual values.
KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "sorted": ("reverse=True", "key=len"),
    "sort": ("reverse=True", "key=len"),
    "max": ("default=0", "default=None", "key=len"),
    "min": ("default=0", "default=None", "key=len"),
    "open": ("encoding='utf-8'", "newline=''"),
    "enumerate": ("start=1",),
    "dumps": ("sort_keys=True", "indent=2", "ensure_ascii=False"),
    "dump": ("sort_keys=True", "indent=2", "ensure_ascii=False"),
    "split": ("maxsplit=1",),
    "zip": ("strict=True",),
    "sum": ("start=0",),
    "int": ("base=2",),
    "getattr": ("None",),
    "get": ("None", "0", "[]", "''", "{}", "False"),
    "pop": ("0", "None", "-1"),
    "next": ("None",),
    "round": ("2",),
    "range": ("0", "-1"),
    "replace": ("1",),
    "mkdir": ("parents=True", "exist_ok=True"),
    "makedirs": ("exist_ok=True",),
    "print": ("end=''",),
    "splitlines": ("keepends=True",),
}
