"""What the words of an invented function's name usually mean in Python: `calculate_remainder(a, b)` is `a % b`.

A table of templates by word and number of arguments. `{a0}` and `{a1}` are the arguments as they stand in a call,
`{x}` and `{y}` the same as operands. Nothing of the repository is looked at.
"""

import re
from collections.abc import Iterator, Mapping

_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TWO_THINGS = frozenset({"and", "or"})  # a name that says two things says neither
_LEAST_LETTERS = 4  # of a word that is found inside another one, as in `lowercased`
_INSIDE = 0.3  # how much less that says

_OF_ONE: Mapping[str, tuple[str, ...]] = {
    "abs": ("abs({a0})",),
    "absolute": ("abs({a0})",),
    "ascii": ("ord({a0})",),
    "average": ("sum({a0}) / len({a0})", "sum({a0}) // len({a0})"),
    "binary": ("bin({a0})[2:]", "bin({a0})"),
    "capitalize": ("{x}.capitalize()",),
    "char": ("chr({a0})",),
    "clone": ("{x}.copy()", "{x}[:]"),
    "copy": ("{x}.copy()", "{x}[:]"),
    "count": ("len({a0})", "Counter({a0})"),
    "decrement": ("{x} - 1",),
    "digits": ("[int(d) for d in str({a0})]", "str({a0})"),
    "distinct": ("set({a0})",),
    "double": ("{x} * 2",),
    "empty": ("not {x}", "len({a0}) == 0"),
    "even": ("{x} % 2 == 0",),
    "first": ("{x}[0]",),
    "frequency": ("Counter({a0})",),
    "half": ("{x} // 2", "{x} / 2"),
    "increment": ("{x} + 1",),
    "integer": ("int({a0})",),
    "items": ("{x}.items()", "list({x}.items())"),
    "keys": ("{x}.keys()", "list({x}.keys())"),
    "last": ("{x}[-1]",),
    "length": ("len({a0})",),
    "len": ("len({a0})",),
    "list": ("list({a0})",),
    "lower": ("{x}.lower()",),
    "lowercase": ("{x}.lower()",),
    "max": ("max({a0})",),
    "maximum": ("max({a0})",),
    "mean": ("sum({a0}) / len({a0})",),
    "min": ("min({a0})",),
    "minimum": ("min({a0})",),
    "negate": ("-{x}",),
    "negative": ("-{x}", "{x} < 0"),
    "next": ("{x} + 1", "next({a0})", "{x}.next"),
    "number": ("int({a0})",),
    "odd": ("{x} % 2 == 1",),
    "palindrome": ("{x} == {x}[::-1]",),
    "pop": ("{x}.pop()",),
    "positive": ("{x} > 0", "abs({a0})"),
    "reverse": ("{x}[::-1]", "list(reversed({a0}))"),
    "reversed": ("{x}[::-1]", "list(reversed({a0}))"),
    "size": ("len({a0})",),
    "sort": ("sorted({a0})",),
    "sorted": ("sorted({a0})",),
    "split": ("{x}.split()", "list({a0})"),
    "sqrt": ("math.sqrt({a0})", "{x} ** 0.5"),
    "square": ("{x} ** 2", "{x} * {x}"),
    "string": ("str({a0})",),
    "strip": ("{x}.strip()",),
    "sum": ("sum({a0})",),
    "swap": ("{x}[::-1]",),
    "title": ("{x}.title()", "{x}.capitalize()"),
    "total": ("sum({a0})",),
    "trim": ("{x}.strip()",),
    "tuple": ("tuple({a0})",),
    "twice": ("{x} * 2",),
    "unique": ("set({a0})", "list(set({a0}))"),
    "upper": ("{x}.upper()",),
    "uppercase": ("{x}.upper()",),
    "values": ("{x}.values()", "list({x}.values())"),
    "words": ("{x}.split()",),
}

_OF_TWO: Mapping[str, tuple[str, ...]] = {
    "absolute": ("abs({x} - {y})",),
    "add": ("{x} + {y}", "{x}.append({a1})", "{x}.add({a1})"),
    "append": ("{x}.append({a1})", "{x} + {y}"),
    "average": ("({x} + {y}) / 2", "({x} + {y}) // 2"),
    "bigger": ("max({a0}, {a1})", "{x} > {y}"),
    "combine": ("{x} + {y}",),
    "compare": ("{x} == {y}", "{x} < {y}", "{x} > {y}"),
    "concat": ("{x} + {y}",),
    "concatenate": ("{x} + {y}",),
    "contains": ("{y} in {x}", "{x} in {y}"),
    "count": ("{x}.count({a1})", "{y}.count({a0})"),
    "diff": ("{x} - {y}", "abs({x} - {y})", "{y} - {x}"),
    "difference": ("{x} - {y}", "abs({x} - {y})", "{y} - {x}"),
    "distance": ("abs({x} - {y})", "{y} - {x}", "{x} - {y}"),
    "div": ("{x} // {y}", "{x} / {y}"),
    "divide": ("{x} // {y}", "{x} / {y}"),
    "division": ("{x} // {y}", "{x} / {y}"),
    "equal": ("{x} == {y}",),
    "equals": ("{x} == {y}",),
    "find": ("{x}.find({a1})", "{x}.index({a1})"),
    "gap": ("{y} - {x}", "{x} - {y}", "abs({x} - {y})"),
    "greater": ("{x} > {y}", "max({a0}, {a1})"),
    "includes": ("{y} in {x}",),
    "index": ("{x}.index({a1})", "{y}.index({a0})"),
    "intersection": ("{x} & {y}",),
    "join": ("{x} + {y}", "{x}.join({a1})"),
    "larger": ("max({a0}, {a1})", "{x} > {y}"),
    "less": ("{x} < {y}",),
    "match": ("{x} == {y}",),
    "max": ("max({a0}, {a1})",),
    "maximum": ("max({a0}, {a1})",),
    "merge": ("{x} + {y}",),
    "mid": ("({x} + {y}) // 2", "{x} + ({y} - {x}) // 2"),
    "middle": ("({x} + {y}) // 2",),
    "midpoint": ("({x} + {y}) // 2",),
    "min": ("min({a0}, {a1})",),
    "minimum": ("min({a0}, {a1})",),
    "minus": ("{x} - {y}",),
    "mod": ("{x} % {y}",),
    "modulo": ("{x} % {y}",),
    "modulus": ("{x} % {y}",),
    "multiply": ("{x} * {y}",),
    "plus": ("{x} + {y}",),
    "position": ("{x}.index({a1})", "{y}.index({a0})"),
    "pow": ("{x} ** {y}",),
    "power": ("{x} ** {y}",),
    "product": ("{x} * {y}",),
    "push": ("{x}.append({a1})",),
    "quotient": ("{x} // {y}", "{x} / {y}"),
    "ratio": ("{x} / {y}",),
    "remainder": ("{x} % {y}",),
    "same": ("{x} == {y}",),
    "smaller": ("min({a0}, {a1})", "{x} < {y}"),
    "subtract": ("{x} - {y}",),
    "sum": ("{x} + {y}",),
    "times": ("{x} * {y}",),
    "total": ("{x} + {y}",),
    "union": ("{x} | {y}",),
    "xor": ("{x} ^ {y}",),
}

# What stands alone as a statement changes its argument.
_IN_PLACE: Mapping[str, tuple[str, ...]] = {
    "clear": ("{x}.clear()",),
    "pop": ("{x}.pop()",),
    "reverse": ("{x}.reverse()",),
    "sort": ("{x}.sort()",),
    "sorted": ("{x}.sort()",),
}


def meant_by(name: str, count: int, *, alone: bool = False) -> Iterator[tuple[str, float]]:
    """Templates of what a name of this many arguments may mean, with what each says less than the best; in nats.

    `alone`: the call is a statement, whose value nobody takes.
    """
    words = [w.lower() for w in _HUMPS.findall(name)]
    if not _TWO_THINGS.isdisjoint(words):
        return
    tables = ((_IN_PLACE,) if alone and count == 1 else ()) + ({1: (_OF_ONE,), 2: (_OF_TWO,)}.get(count, ()))
    told: set[str] = set()
    for table in tables:
        for word, templates in table.items():
            inside = len(word) >= _LEAST_LETTERS and any(word in other for other in words)
            if word in words or inside:
                less = 0.0 if word in words else _INSIDE
                for place, template in enumerate(templates):
                    if template not in told:
                        told.add(template)
                        yield template, less + 0.2 * place
