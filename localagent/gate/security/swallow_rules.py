"""Rules about silenced exceptions, each with the examples that prove it. What fires them is in `swallow`."""

from localagent.domain.gate import Severity
from localagent.gate.core.rule import Rule, RuleExample, became, question

_BASE = "def f(x):\n    return g(x)\n"
_TRIES = "def f(x):\n    try:\n        return g(x)\n    except {}:\n        {}\n"
_RAISES = "def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n"

_CLASS = "class A:\n    x = 0\n\n    def __enter__(self):\n        return self\n\n"
BARE = Rule(
    id="bare-except",
    severity=Severity.MEDIUM,
    why="a handler for everything also hides what nobody thought of",
    remedy="name the exceptions that are meant, or raise again",
    match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    except:\n        return None\n"),
        became(
            "def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return None\n",
            "def f(x):\n    try:\n        return g(x)\n    except:\n        return None\n",
        ),
    ),
    not_match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    except:\n        log(x)\n        raise\n"),
        became(
            "def f(x):\n    try:\n        return g(x)\n    except:\n        return 1\n",
            "def f(x):\n    try:\n        return g(-x)\n    except:\n        return 1\n",
        ),
    ),
)
BROAD = Rule(
    id="broad-except",
    severity=Severity.MEDIUM,
    why="catching Exception or BaseException without raising again silences every failure",
    remedy="name the exceptions that are meant, or raise again",
    match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    except Exception:\n        pass\n"),
        became(
            _BASE, "def f(x):\n    try:\n        return g(x)\n    except (KeyError, BaseException):\n        return 0\n"
        ),
        became(
            "def f(x):\n    try:\n        return g(x)\n    except KeyError as e:\n        return h(e)\n",
            "def f(x):\n    try:\n        return g(x)\n    except Exception as e:\n        return h(e)\n",
        ),
        became(
            "import builtins as b\n" + _BASE,
            "import builtins as b\ndef f(x):\n    try:\n        return g(x)\n    except b.Exception:\n        0",
        ),
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    except* Exception:\n        pass\n"),
        *(
            became(_BASE, _TRIES.format(kind, body))
            for kind, body in (
                ("Exception", "if 0:\n            raise\n        return None"),
                ("Exception", "while 1 > 2:\n            raise\n        return None"),
                ("Exception", "def again():\n            raise\n        return None"),
                ("Exception", "return None\n        raise"),
                ("(ValueError, *(Exception,))", "return None"),
                ("(ValueError,) + (Exception,)", "return None"),
            )
        ),
        became("E = Exception\n" + _BASE, "E = Exception\n" + _TRIES.format("E", "return None")),
        became("A = (KeyError, Exception)\n" + _BASE, "A = (KeyError, Exception)\n" + _TRIES.format("A", "0")),
        became(_BASE, "from builtins import Exception as E\n" + _TRIES.format("E", "return None")),
    ),
    not_match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return None\n"),
        became(
            _BASE, "def f(x):\n    try:\n        return g(x)\n    except Exception as e:\n        raise Own(x) from e\n"
        ),
        became(
            "def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return 1\n",
            "def f(x):\n    try:\n        return g(x)\n    except (KeyError, IndexError):\n        return 1\n",
        ),
        became("E = KeyError\n" + _BASE, "E = KeyError\n" + _TRIES.format("E", "return None")),
        became(_BASE, _TRIES.format("Exception", "if x:\n            h(x)\n        raise")),
        became(_BASE, _TRIES.format("Exception", "if x:\n            raise Own(x)\n        else:\n            raise")),
    ),
)
AT_TIMES = question(
    id="broad-except-at-times",
    why="a handler of everything that raises again on some of its paths silences the others",
    remedy="name the exceptions that are meant, or raise again on every path",
    match=tuple(
        became(_BASE, _TRIES.format("Exception", body))
        for body in (
            "if x:\n            raise\n        return None",
            "for y in x:\n            raise\n        return None",
        )
    ),
    not_match=(
        became(_BASE, _TRIES.format("KeyError", "if x:\n            raise\n        return None")),
        became(_BASE, _TRIES.format("Exception", "h(x)\n        raise")),
    ),
)
SUPPRESS = Rule(
    id="suppress",
    severity=Severity.MEDIUM,
    why="contextlib.suppress is a handler that does nothing",
    remedy="handle the exception, or let it through",
    match=(
        became(
            "import contextlib\n" + _BASE,
            "import contextlib\ndef f(x):\n    with contextlib.suppress(Exception):\n        return g(x)\n",
        ),
        became(
            "from contextlib import suppress as s\n" + _BASE,
            "from contextlib import suppress as s\ndef f(x):\n    with s(KeyError):\n        return g(x)\n",
        ),
    ),
    not_match=(became(_BASE, "import contextlib\ndef f(x):\n    with contextlib.closing(x):\n        return g(x)\n"),),
)
SILENCES = Rule(
    id="silences-raise",
    severity=Severity.MEDIUM,
    why="the only change takes away the raise or assert that the failing tests end in",
    remedy="make what is computed right, and leave the check",
    match=(
        RuleExample(before=_RAISES, after="def f(x):\n    return x\n", exception="ValueError"),
        RuleExample(
            before=_RAISES, after="def f(x):\n    if x < 0:\n        pass\n    return x\n", exception="ValueError"
        ),
        RuleExample(
            before=_RAISES,
            after="def f(x):\n    if x < 0:\n        return None\n    return x\n",
            exception="ValueError",
        ),
        RuleExample(
            before="def f(x):\n    assert x > 0, x\n    return x\n",
            after="def f(x):\n    return x\n",
            exception="AssertionError",
        ),
    ),
    not_match=(
        RuleExample(before=_RAISES, after="def f(x):\n    return x\n", exception="KeyError"),
        RuleExample(before=_RAISES, after=_RAISES.replace("ValueError", "TypeError"), exception="ValueError"),
        RuleExample(before=_RAISES, after=_RAISES.replace("x < 0", "x < -1"), exception="ValueError"),
        RuleExample(
            before=_RAISES, after="def f(x):\n    if x < 0:\n        x = abs(x)\n    return x\n", exception="ValueError"
        ),
    ),
)
FINALLY = Rule(
    id="finally-jumps",
    severity=Severity.MEDIUM,
    why="a `finally` that leaves by return, break or continue drops whatever was raised",
    remedy="leave after the `try`, or handle the exceptions that are meant",
    match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    finally:\n        return None\n"),
        became(
            "def f(x):\n    for y in x:\n        g(y)\n",
            "def f(x):\n    for y in x:\n        try:\n            g(y)\n        finally:\n            break\n",
        ),
    ),
    not_match=(
        became(_BASE, "def f(x):\n    try:\n        return g(x)\n    finally:\n        h(x)\n"),
        became(
            _BASE, "def f(x):\n    try:\n        return g(x)\n    finally:\n        for y in x:\n            break\n"
        ),
    ),
)
EXIT = question(
    id="exit-swallows",
    why="an `__exit__` that answers true drops whatever was raised in the block",
    remedy="answer nothing, or catch the exceptions that are meant inside",
    match=(
        *(
            became(_CLASS, _CLASS + method)
            for method in (
                "    def __exit__(self, kind, error, trace):\n        return True\n",
                "    async def __aexit__(self, *_):\n        self.x = 1\n        return 1\n",
                "    def __exit__(self, kind, error, trace):\n        return kind is not None\n",
                "    __exit__ = lambda self, *_: True\n",
            )
        ),
        became(_BASE, "def f(x, s):\n    s.push(lambda *_: True)\n    return g(x)\n"),
    ),
    not_match=(
        became(_CLASS, _CLASS + "    def __exit__(self, kind, error, trace):\n        self.x = 1\n"),
        became(_CLASS, _CLASS + "    def __exit__(self, *a):\n        return self.x.__exit__(*a)\n"),
        became(_CLASS, _CLASS + "    def __exit__(self, *a):\n        return False\n"),
    ),
)
RULES = (BARE, BROAD, AT_TIMES, SUPPRESS, SILENCES, FINALLY, EXIT)
