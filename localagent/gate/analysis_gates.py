"""What the gates ask of the script of a data analysis: it writes new files, and nothing outside of its folder.

Whoever gets the script may run it without a jail. So it is judged as code is that a repair adds, but that making and
writing files is what an analysis is for; deleting, moving, linking and copying are not. Signs: a path that the script
puts together from pieces is not seen.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from localagent.code.names import callee_name, last_name
from localagent.code.source_text import parse_or_none
from localagent.domain.policy import DangerRule, Policy

_RULE = "write-files"
_MAKES = frozenset(
    {
        "builtins.open:write", "io.open:write", "codecs.open:write", "gzip.open:write", "bz2.open:write",
        "lzma.open:write", "zipfile.ZipFile:write", "os.mkdir", "os.makedirs", "numpy.save*", "h5py", "sqlite3",
        "open:overwrite", "open:write", "write_text", "write_bytes", "mkdir", "makedirs", "to_csv", "to_json",
        "to_excel", "to_parquet", "to_feather", "to_hdf", "to_sql", "to_stata", "savefig", "savetxt", "savez",
        "write_image", "write_html", "writestr",
    }
)  # fmt: skip
_AWAY = re.compile(
    r"/(?!dev/null$)[\w.~-]+|~[\w.-]*(?:/|$)|(?:.*/)?\.\.(?:/|$)|(?:file|https?|ftps?|s3|gs):", re.IGNORECASE
)
_PLACES = frozenset({"expanduser", "expandvars", "home", "environ", "getenv", "__file__", "argv", "executable"})
_TELL = frozenset({"print", "title", "suptitle", "xlabel", "ylabel", "set_title", "set_xlabel", "set_ylabel", "text"})


def analysing(policy: Policy) -> Policy:
    """The policy as it holds, and is told, for the script of an analysis: making files is no danger."""
    rules = (_narrowed(rule) if rule.id == _RULE else rule for rule in policy.dangers)
    told = tuple(replace(rule, why=re.sub(r"\ba repair\b", "an analysis", rule.why)) for rule in rules)
    return replace(policy, dangers=told)


def _narrowed(rule: DangerRule) -> DangerRule:
    calls, names, methods = (
        tuple(entry for entry in kind if entry not in _MAKES) for kind in (rule.calls, rule.names, rule.methods)
    )
    return replace(rule, calls=calls, names=names, methods=methods)


def reaches_outside(source: str) -> Iterator[tuple[str, int]]:
    """(what, line) of paths that lead out of the working folder and are given to a call, and of names of places.

    What is printed, or written on a plot, is a text.
    """
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name | ast.Attribute) and (name := last_name(node)) in _PLACES:
            yield name, node.lineno
        if not isinstance(node, ast.Call) or callee_name(node) in _TELL:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for part in (inner for argument in given for inner in ast.walk(argument)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and _AWAY.match(part.value):
                yield part.value[:80], part.lineno
