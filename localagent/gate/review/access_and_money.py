"""Sign: a function that is about access or money, by its words, decides or computes otherwise than it did.

Doors and skims are small: a further `or`, a rounding. So a change of what such a function asks and how it rounds is
asked about, and so is a new predicate and an attribute that is set. Not asked about: a moved bound, another rate, a
check for emptiness or for a type, which are ordinary repairs. Not seen: such functions whose words say something else.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from localagent.code.condition_implication import shape
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, SourceChange
from localagent.text.visible_text import shortened

_FEE = "def fee(order):\n    if order.total < 20:\n        return 5\n    return round(order.total * 0.02, 2)\n"
_MAY = "def may_read(user, page):\n    log.info('asked')\n    return page.public or user in page.readers\n"
_SEND = "def send(request, routes):\n    if request.path in routes:\n        return g(request)\n    return None\n"
_OWNED = "class Account:\n    owner = None\n"

STAKES = question(
    id="stakes-changed",
    why="what decides about access or money decides otherwise, and a small change there is worth much to somebody",
    remedy="have a person who knows the rule confirm the new one",
    match=(
        became(_FEE, _FEE.replace("order.total < 20", "order.total < 20 and not order.note")),
        became(_FEE, _FEE.replace("round(order.total * 0.02, 2)", "int(order.total * 0.02)")),
        became(_FEE, _FEE.replace("    return round", "    order.total -= 1\n    return round")),
        became(_MAY, _MAY.replace("user in page.readers", "page.readers")),
        became(_MAY, _MAY.replace("page.public", "page.public or user.name == page.name")),
        became("STAFF = '@a.example'\n", "STAFF = '.example'\n"),
        became(_SEND, _SEND.replace("request.path in", "request.path.lower() in")),
        became(_SEND, _SEND.replace("        return g", "        request.user = routes[0]\n        return g")),
        became(_OWNED, _OWNED + "\n    def is_owner(self, user):\n        return bool(user)\n"),
    ),
    not_match=(
        became(_MAY, _MAY.replace("'asked'", "'somebody asked'")),
        became(_MAY, _MAY.replace("(user, page)", "(user: User, page: Page) -> bool")),
        became(_MAY, _MAY.replace("    log", '    """Whether a user may read a page."""\n    log')),
        became(_SEND, _SEND.replace("g(request)", "g(request, routes)")),
        became(_FEE, _FEE.replace("< 20", "<= 25").replace("0.02", "0.03")),
        became(_FEE, _FEE + "\n\ndef total(rows):\n    return sum(rows)\n"),
        became("def total(rows):\n    return sum(rows)\n", "def total(rows):\n    return sum(rows, 1)\n"),
    ),
)
_ABOUT = re.compile(
    r"(?i)(?:^|[_\W])(?:auth(?:enticat\w*|oriz\w*|oris\w*)?|log_?(?:in|on)|sign_?in|access(?:es)?|permi(?:ssions?|ts?|tted)|perms?|roles?|grants?|granted"
    r"|allow(?:s|ed)?|den(?:y|ies|ied)|forbid(?:den)?|admins?|administrators?|staff|owner(?:s|ship)?|superusers?|sudo|tenants?|guests?|entitle\w*"
    r"|licen[cs](?:ed?|ing)|consents?|privileges?|quotas?|credentials?|passwords?|passcodes?|trust(?:ed|s)?|clearance|votes?|ballots?|captcha"
    r"|otp|mfa|totp|csrf|cors|acl|rbac|sessions?|impersonat\w*|revok\w*|banned|blocked|may|can_\w+"
    r"|pric(?:e|es|ing)|costs?|amounts?|balances?|fees?|tax(?:es)?|vat|discounts?|coupons?|vouchers?|rebates?|refunds?|charges?|pay|paid|payments?|payouts?"
    r"|payroll|invoices?|bill(?:s|ing)?|wallets?|credits?|debits?|withdraw\w*|deposits?|transfers?|accounts?|accrue\w*|ledgers?|interest|salar(?:y|ies)|wages?|bonus(?:es)?"
    r"|commissions?|currenc(?:y|ies)|cents|cart|checkout|basket|loyalty|loans?|bets?|stakes?|lotter(?:y|ies)|winners?|raffle|bids?|auctions?"
    r"|tips?|shares?|stipends?|premiums?|insurance|claims?|mortgages?|dos(?:e|es|age|ages)|grades?|scor(?:e|es|ing)|exams?)(?=$|[_\W])"
)
_LETS = re.compile(r"(?i)(?:allow(?:s|ed)?|permi(?:ts?|tted)|den(?:y|ies|ied)|forbid(?:den)?|may|blocked|accepts?)")
_WHO = re.compile(
    r"(?i)(?:^|[_\W])(?:users?|members?|persons?|people|customers?|clients?|callers?|actors?|subjects?|principals?|visitors?|students?"
    r"|patients?|employees?|requests?|pages?|documents?|files?|paths?|urls?|actions?|verbs?|scopes?|resources?|operations?|origins?|hosts?"
    r"|ips?|addr(?:ess(?:es)?)?|peers?|senders?|emails?|domains?|ports?|tokens?|secrets?|headers?|cookies?|uploads?|commands?"
    r"|polic(?:y|ies)|rules?|firewalls?|rates?|attempts?|uid|gid|whitelist|blacklist|allowlist|blocklist)(?=$|[_\W])"
)
_NEAR = re.compile(
    r"(?i)(?:^|[_\W])(?:users?|customers?|orders?|requests?|polic(?:y|ies)|rules|packets?|firewalls?|uploads?|secrets?|digests?"
    r"|consttime|stock|tickets?|seats?|bookings?|reservations?|patients?|employees?|members?|students?|drugs?|prescriptions?"
    r"|quiz(?:zes)?|elections?|candidates?|deck|dice|shuffle|webhooks?|hooks?|headers|hosts?|visitors?|subscri\w+|webauthn"
    r"|certificates?|sensors?|alarms?|valves?|brakes?|meters?|router|dispatch|middleware|gateway|moderat\w*|spam"
    r"|limits?|allocat\w*|priorit\w+|approv\w+|review(?:s|er|ers)?|expir\w+|valid(?:ate|ator|ity)?|verif\w+)(?=$|[_\W])"
)
_DECIDES = re.compile(r"_?(?:is|has|can|may|check|verify|allows?|grants?|permits?)_")
_DELETES = re.compile(r"^(?:rmtree|unlink|remove|rmdir|removedirs|delete\w*|drop\w*|truncate|purge|wipe|prune|shred)$")
_BROUGHT = re.compile(r"^(?:headers|cookies|args|query|query_params|GET|POST|form|META|params)$")
_ORDERS = frozenset({"sorted", "reversed", "sort", "reverse", "shuffle"})
_ROUNDS = frozenset({"round", "int", "floor", "ceil", "trunc", "quantize"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def stakes(change: SourceChange) -> Signs:
    """(what, where) for functions about access or money that say something else, and constants of that name."""
    about = about_stakes(change.path)
    for name, old, new in change.pairs:
        if about or _is_about(name, old) or _is_about(name, new):
            if _asks(old) != _asks(new) or _rounds(old) != _rounds(new):
                yield f"{name} is about access or money", new
        elif (_NEAR.search(_CAMEL.sub("_", f"{change.path}.{name}")) or _takes(new)) and _ordered(old) != _ordered(new):
            yield f"{name} decides otherwise about people, orders or requests", new
        if _deletes(old) and _deletes(new) and _computation(old) != _computation(new):
            yield f"{name} deletes, and does so otherwise", new
        if (about or _is_about(name, new)) and (asked := _brought(new) - _brought(old)):
            yield f"{name} is about access or money, and asks {shortened(next(iter(asked)), 60)}", new
    for name, function in change.after.functions.items():
        if name in change.before.functions or not _DECIDES.match(name.rpartition(".")[2]):
            continue
        if about_stakes(name) and _is_about(name, function):
            yield f"{name} is new, and about access or money", function
    had = change.before.named
    for name, value in change.after.named.items():
        if (about or about_stakes(name)) and name in had and _is_other(had[name], value):
            yield f"{name} is about access or money", value


def attributes_set(change: SourceChange) -> Signs:
    """Attributes about access, money or people that are newly set, of other objects than `self`."""
    had = {ast.unparse(node) for node in _set_attributes(change.before)}
    for node in _set_attributes(change.after):
        text = ast.unparse(node)
        if (
            text not in had
            and ast.unparse(node.value) != "self"
            and (about_stakes(node.attr) or _NEAR.search(node.attr))
        ):
            yield f"{shortened(text, 60)} is set", node


def _set_attributes(source: Source) -> Iterator[ast.Attribute]:
    return (n for n in source.nodes if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load))


def _deletes(function: Function) -> bool:
    return any(isinstance(n, ast.Call) and _DELETES.match(callee_name(n.func)) for n in walk(function))


def _computation(function: Function) -> list[str]:
    """What a function works out, asks and goes through, without what it reports."""
    kinds = (ast.BinOp, ast.Compare, ast.BoolOp, ast.For, ast.UnaryOp)
    found = [n.iter if isinstance(n, ast.For) else n for n in walk(function) if isinstance(n, kinds)]
    return sorted(ast.dump(n) for n in found)


def _brought(function: Function) -> set[str]:
    """What a function reads of what a request brings along."""
    found = set()
    for node in walk(function):
        holder = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        holder = node.value if isinstance(node, ast.Subscript) else holder
        if isinstance(holder, ast.Attribute | ast.Name) and _BROUGHT.match(callee_name(holder)):
            found.add(ast.unparse(node))
    return found


def _takes(function: Function) -> bool:
    return any(isinstance(n, ast.arg) and _NEAR.search(n.arg) for n in walk(function))


def _asks(function: Function) -> list[str]:
    """What a function asks: comparisons without their bounds, likenesses, and what stands in an `and` or an `or`."""
    found: list[str] = []
    for node in walk(function):
        if isinstance(node, ast.Compare):
            found.append(shape(node))
        elif isinstance(node, ast.Call) and callee_name(node.func) in ("startswith", "endswith", "match", "search"):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and callee_name(node.func) in ("get", "getattr", "pop") and len(node.args) > 1:
            found.append(f"else {ast.unparse(node.args[-1])}")
        elif isinstance(node, ast.BoolOp):
            inner = [type(v.op).__name__ for v in node.values if isinstance(v, ast.BoolOp)]
            found.append(f"{type(node.op).__name__} over {inner}" if inner else "")
            found += [ast.unparse(v) for v in node.values if isinstance(v, ast.Attribute | ast.Subscript | ast.UnaryOp)]
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            found.append(f"return {node.value.value}" if isinstance(node.value.value, bool | str) else "")
    return sorted(text for text in found if text)


def _ordered(function: Function) -> list[str]:
    """What a function asks, and what it puts in order."""
    puts = [n for n in walk(function) if isinstance(n, ast.Call) and callee_name(n.func) in _ORDERS]
    return [*_asks(function), *sorted(callee_name(n.func) for n in puts)]


def _rounds(function: Function) -> list[str]:
    """How a function rounds, and what it sets of what it was given."""
    found: list[str] = []
    for node in walk(function):
        if isinstance(node, ast.Call) and callee_name(node.func) in _ROUNDS:
            found.append(callee_name(node.func))
        elif isinstance(node, ast.Attribute | ast.Name) and callee_name(node).startswith("ROUND_"):
            found.append(callee_name(node))
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.append(f"sets {ast.unparse(node)}")
    return sorted(found)


def _is_other(was: ast.expr, now: ast.expr) -> bool:
    """Whether a constant is another; a number may well be."""
    number = isinstance(now, ast.Constant) and isinstance(now.value, int | float) and not isinstance(now.value, bool)
    return not number and ast.dump(was) != ast.dump(now)


def about_stakes(text: str) -> bool:
    """Whether a name or a path holds a word of access or money."""
    return _ABOUT.search(_CAMEL.sub("_", text)) is not None


def _is_about(name: str, function: Function) -> bool:
    """By its own name, its class's, its parameters', and the attributes that it sets.

    A word that only says that something is let through (`allows_any`, `allow_extra`) says so of versions and keys, too:
    it counts where the function also speaks of somebody, or of what one is let into.
    """
    nodes = walk(function)
    said = [name, *(n.arg for n in nodes if isinstance(n, ast.arg))]
    said += [n.attr for n in nodes if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)]
    if any(about_stakes(_without_lets(text)) for text in said):
        return True
    return any(map(about_stakes, said)) and any(_WHO.search(_CAMEL.sub("_", text)) for text in _names(name, nodes))


def _without_lets(text: str) -> str:
    return "_".join(word for word in re.split(r"[_\W]+", _CAMEL.sub("_", text)) if not _LETS.fullmatch(word))


def _names(name: str, nodes: Sequence[ast.AST]) -> Iterator[str]:
    """What a function calls things: itself, its parameters, variables and attributes, and its texts."""
    yield name
    for node in nodes:
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute):
            yield callee_name(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


CHECKS = ((STAKES, stakes), (STAKES, attributes_set))
