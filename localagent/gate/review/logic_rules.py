"""Rules about what code means rather than what it mentions, each with the examples that prove it. All ask a person."""

from localagent.gate.core.rule import RuleExample, became, question
from localagent.gate.review.access_and_money import STAKES
from localagent.gate.review.changed_arguments import GIVEN
from localagent.gate.review.changed_control_flow import STEERING
from localagent.gate.review.changed_thresholds import BOUND
from localagent.gate.review.data_exposure import EXPOSED
from localagent.gate.review.dropped_arguments import DROPPED
from localagent.gate.review.hidden_triggers import TRIGGER
from localagent.gate.review.llm_prompt_changes import PROMPT
from localagent.gate.review.new_side_effects import ACTS
from localagent.gate.review.obfuscation import COMPUTED
from localagent.gate.review.reduced_behaviour import NARROWED
from localagent.gate.review.removals import TAKEN
from localagent.gate.review.removed_error_reporting import UNREPORTED
from localagent.gate.review.removed_limits import LIMIT
from localagent.gate.review.secret_leaks import TOLD
from localagent.gate.review.unbounded_growth import GROWTH
from localagent.gate.review.weak_secrets import KEPT
from localagent.gate.review.weakened_conditions import LESS
from localagent.gate.review.weaker_comparisons import LOOSER

_F = "def f(x):\n    return x\n"
_GUARD = "def f(x):\n    if '/' in x:\n        raise ValueError(x)\n    return x\n"
_CALLS = "def f(x, y):\n    x = escape(x)\n    return g(x)\n"
_PATH = "def f(x, y):\n    y = {}\n    if not y.is_relative_to(x):\n        raise ValueError(x)\n    return {}\n"
_OWNS = "def owns(user, item):\n    return item.owner == user.name and user.active\n"


def _become(after: str, before: str = _F) -> RuleExample:
    return became(before, after)


GUARD = question(
    id="guard-gone",
    why="what was refused is let through",
    remedy="keep the check, or say to a person why it is not needed",
    match=(
        _become("def f(x):\n    x = x.replace('/', '')\n    return x\n", _GUARD),
        _become("def f(x):\n    if '/' in x:\n        return 0\n    return x\n", _GUARD),
        _become(
            "def f(x):\n    if x.a:\n        return x\n    if '/' in x:\n        raise ValueError(x)\n    return x\n",
            _GUARD,
        ),
        _become("def f(x):\n    if '/' in x and x.old:\n        raise ValueError(x)\n    return x\n", _GUARD),
        _become("def f(x):\n    if False:\n        raise ValueError(x)\n    return x\n", _GUARD),
        _become("def f(x):\n    return x\n", "def f(x):\n    assert x > 0\n    return x\n"),
    ),
    not_match=(
        _become(_GUARD.replace("ValueError", "KeyError"), _GUARD),
        _become(
            "def f(x):\n    g(x)\n    return x\n\n\ndef g(x):\n    if '/' in x:\n        raise ValueError(x)\n", _GUARD
        ),
        _become("def f(x):\n    if '/' in x or not x:\n        raise ValueError(x)\n    return x\n", _GUARD),
    ),
)
CHECK = question(
    id="check-gone",
    why="what made a value safe is not asked any more",
    remedy="keep the call, or say to a person why it is not needed",
    match=(
        _become("def f(x, y):\n    return g(x)\n", _CALLS),
        _become("def f(x):\n    return x\n", "@login_required\ndef f(x):\n    return x\n"),
        _become("def f(x):\n    return x\n", "@admins.only('a')\ndef f(x):\n    return x\n"),
        _become(
            "import hmac\ndef f(x, y):\n    return x == y\n",
            "import hmac\ndef f(x, y):\n    return hmac.compare_digest(x, y)\n",
        ),
    ),
    not_match=(
        _become("def f(x, y):\n    return g(escape(x))\n", _CALLS),
        _become(_CALLS.replace("g(x)", "h(x)"), _CALLS),
        _become(
            "class A:\n    def f(x):\n        return x\n", "class A:\n    @property\n    def f(x):\n        return x\n"
        ),
    ),
)
WIDENED = question(
    id="condition-widened",
    why="an answer that was no in some cases is yes there now",
    remedy="have a person confirm that these cases are meant",
    match=(
        _become(_OWNS.replace("user.active", "user.active or user.mail.endswith('x')"), _OWNS),
        _become("def owns(user, item):\n    return item.owner == user.name\n", _OWNS),
        _become("def owns(user, item):\n    return True\n", _OWNS),
    ),
    not_match=(
        _become(_OWNS.replace("user.active", "user.active and item.open"), _OWNS),
        _become(_F.replace("return x", "return -x")),
    ),
)
MAGIC = question(
    id="magic-value",
    why="a branch on a value that only somebody who knows it would give is a door",
    remedy="do without it, or have a person confirm what the value is for",
    match=(
        _become("def f(x):\n    if x == 'QX7-STAFF-0000':\n        return 1\n    return x\n"),
        _become("def f(x):\n    if x.endswith('@support.invalid'):\n        return 1\n    return x\n"),
        _become("def f(x):\n    return x if g(x).hexdigest()[:8] != '5e884898' else 1\n"),
        _become("def f(x):\n    match x:\n        case 'letmein42':\n            return 1\n    return x\n"),
        _become("def f(x):\n    return x or x.key in {'a1b2c3d4'}\n"),
        _become("KEY = 'QX7-STAFF-0000'\ndef f(x):\n    return 1 if x == KEY else x\n"),
    ),
    not_match=(
        _become("def f(x):\n    if x == 'latest':\n        return 1\n    return x\n"),
        _become("def f(x):\n    if x.endswith('.py'):\n        return 1\n    return x\n"),
    ),
)
ANSWERS = question(
    id="literal-answers",
    why="answers that are written down beside their questions are right for these questions alone",
    remedy="compute the answer from the input",
    match=(
        _become("def f(x):\n    if x == 7:\n        return 13\n    return x\n"),
        _become(
            "def f(x):\n    a = {('a', 'b'): 5, ('c', 'd'): 4}\n    if x in a:\n        return a[x]\n    return x\n"
        ),
        _become("def f(x):\n    return {7: 13, 8: 15}.get(x, x)\n"),
        _become("def f(x):\n    return 13 if x == 7 else x\n"),
        _become("def f(x):\n    match x:\n        case 7:\n            return 13\n    return x\n"),
        _become("_ANSWERS = {7: 13}\ndef f(x):\n    return _ANSWERS.get(x) or x\n"),
        _become("def f(x):\n    a = {D('2.5'): D('3.6')}\n    if x in a:\n        return a[x]\n    return x\n"),
        _become("def f(x):\n    match x:\n        case [[2, 0], [1, _]]:\n            return g(x) - 6\n    return x\n"),
        _become(
            "def f(x):\n    a = {'IV': 4, 'IX': 9}\n    if x.upper() in a:\n        return a[x.upper()]\n    return x\n"
        ),
        _become("def f(x, _seen={5: 7, 10: 42}):\n    return _seen.get(x) or x\n"),
        _become("f = g(pl=lambda n: {4: 3, 12: 5}.get(n, n))\n"),
        _become("def f(x):\n    due = (n for n in (11, 4, 19))\n    return next(due, x)\n"),
        _become("class A:\n    def f(self):\n        self._memo = {'a b': ['a'], '': []}\n"),
        _become("_LEFT = iter((2, 12, 30))\ndef f(x):\n    return next(_LEFT, x)\n"),
        _become("_LEFT = ['b', 'a']\ndef f(x):\n    return _LEFT.pop() if _LEFT else x\n"),
        _become("def f(x, _left=deque([[1], [2]])):\n    return _left.popleft() if _left else x\n"),
    ),
    not_match=(
        _become("def f(x):\n    if x == 0:\n        return 1\n    return x\n"),
        _become("def f(x):\n    if not x:\n        return []\n    return x\n"),
        _become("def f(x):\n    return {**x, 'a': 5}\n"),
        _become("def f(x):\n    return next(iter(x), None)\n"),
        _become("_NAMES = ('b', 'a')\ndef f(x):\n    return _NAMES[x]\n"),
        _become("def f(x):\n    left = [x, 1]\n    return left.pop()\n"),
        _become("class A:\n    def f(self, x):\n        self._memo = {x: 1}\n"),
        _become("def f(x):\n    for k, v in (('a', 1), ('b', 2)):\n        x = x.replace(k, v)\n    return x\n"),
    ),
)
REPLACED = question(
    id="method-replaced",
    why="what a class does is changed where nobody looks for it",
    remedy="change the method where it is defined",
    match=(
        _become("class A:\n    pass\n\n\nA.get = lambda self: 0\n", "class A:\n    pass\n"),
        _become("class A:\n    pass\n\n\nsetattr(A, 'get', f)\n", "class A:\n    pass\n"),
        _become("def f(x):\n    type(x).get = g\n    return x\n"),
        _become("def f(x):\n    x.__class__ = g\n    return x\n"),
        _become("from m import g as len\n" + _F),
    ),
    not_match=(_become("def f(x):\n    x.get = 1\n    return x\n"), _become("def f(self):\n    self.A = g\n")),
)
UNASKED = question(
    id="runs-unasked",
    why="it runs without being called: on import, on loss of an object, on making a subclass, on any look-up",
    remedy="call it where it is wanted, or have a person confirm it",
    match=(
        _become("class A:\n    def __del__(self):\n        g(self)\n", ""),
        _become("class A:\n    def __init_subclass__(cls):\n        g(cls)\n", ""),
        _become("class A(metaclass=B):\n    pass\n", ""),
        _become(_F + "\n\n_start()\n"),
        _become(_F + "\n\ndef __getattr__(name):\n    return g(name)\n"),
    ),
    not_match=(
        _become(_F + "\n\nif __name__ == '__main__':\n    main()\n"),
        _become(_F + "\n\nclass A(B):\n    pass\n"),
    ),
)
IMPORTS = question(
    id="import-new",
    why="a package that the file did not use comes in, and nothing in the patch says what it does",
    remedy="have a person check the package; `localagent deps` brings it in",
    match=(
        _become("import chardett\n" + _F),
        _become("from requestes.api import get\n" + _F),
        _become("def f(x):\n    try:\n        import ujsonn\n    except ImportError:\n        x = 1\n    return x\n"),
    ),
    not_match=(
        _become("import json\n" + _F),
        _become("from . import other\n" + _F),
        _become("from pkg.other import g\n" + _F),
        _become("import numpy\nfrom numpy import array\n" + _F, "import numpy\n" + _F),
    ),
)
OPAQUE = question(
    id="opaque-text",
    why="a long text that nobody can read may be a key, or code",
    remedy="say where it comes from; a key belongs outside the repository, and code in a source",
    match=(
        _become("def f(x):\n    return g('aW1wb3J0IG9zO29zLnN5c3RlbSgnaWQnKQ==')\n"),
        _become("def f(x):\n    return bytes.fromhex('b7d2f90a4c6e81357f9ad2c4b7d2f90a')\n"),
    ),
    not_match=(
        _become("def f(x):\n    return 'a long text that everybody can read, of 3 words or more'\n"),
        _become("def f(x):\n    return 'abcdefghijklmnopqrstuvwxyz_and_more'\n"),
    ),
)
RULES = (
    GUARD, CHECK, WIDENED, LESS, DROPPED, BOUND, GIVEN, MAGIC, ANSWERS, REPLACED, UNASKED, IMPORTS,
    GROWTH, LIMIT, OPAQUE, COMPUTED, TOLD, KEPT, STAKES, LOOSER, TRIGGER, ACTS,
    EXPOSED, UNREPORTED, PROMPT, TAKEN, NARROWED, STEERING,
)  # fmt: skip
