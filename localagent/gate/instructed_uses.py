"""Uses of what a policy calls dangerous that an instruction asks for in its words: files written, an exit, waiting.

A repair needs none of them; an instruction to save a file cannot be carried out without. They are answered only where
they are plain: in a function, never on import, and on nothing that is written out and lies elsewhere or is a program.
Not promised: that what is written is what was meant; tests say that, or nothing does.
"""

import ast
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from localagent.code.bindings import target_name
from localagent.code.exception_handlers import raises_again
from localagent.code.names import callee_name, dotted_name, imports_of, last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import lines_of
from localagent.domain.gate import Finding
from localagent.domain.paths import RepoPath
from localagent.gate import instructed_answers, instructed_calls
from localagent.gate.instructed_tests import is_stated
from localagent.gate.review.source_change import module_values

_ELSEWHERE = re.compile(
    r"/\w|~(?:/|\w|$)|\\\\|\w:[\\/]|(?:.*/)?\.\.(?:/|$)"
    r"|(?:.*/)?\.(?:git|ssh|bash|profile|zsh|env|venv|config|local|vscode|idea|pre-commit|aws|netrc|pypirc|npmrc|circleci)"
    r"|.*\.(?:py[ciw]?|pth|so|sh|toml|cfg|ini|ya?ml)$"
)
_SETTINGS_FILE = re.compile(r"\w[\w-]*\.(?:toml|cfg|ini|ya?ml)")
_ENTRY = "__main__.py"
_TEST = re.compile(r"test_\w*\.py|\w+_test\.py")
_EXIT, _ON_VARIABLE = "sys.exit() on import", "a condition on environ"  # what the rules of review call them
_ON_INPUT = "a condition that one input alone meets"
_ON_REQUEST = "a condition on what a request brings along"
_BY_NAME = ("call", "name", "method", "setting", "import")  # uses in the table of dangers that are what they are called


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """Uses by their names, and the words of an instruction that ask for them."""

    rule: str
    names: str
    words: str

    def is_named(self, finding: Finding, name: str) -> bool:
        """Whether a use is of this kind."""
        return finding.rule == self.rule and re.fullmatch(self.names, name) is not None

    def is_asked(self, finding: Finding, name: str, instruction: str) -> bool:
        """Whether the words are there for a use of this kind."""
        return self.is_named(finding, name) and re.search(self.words, instruction, re.IGNORECASE) is not None


_GOES = r"\b(?:delet|remov|clean|purg|prun|clear|drop|tempor|expir)"
_KINDS = (
    _Kind(
        rule="write-files",
        names=r"(?:builtins|io|codecs|gzip|bz2|lzma)\.open:write|os\.(?:fdopen:write|mkdir|makedirs|replace|rename)"
        r"|tempfile\.(?:mkstemp|mkdtemp|NamedTemporaryFile:write)|zipfile\.ZipFile:write|sqlite3(?:\.(?:connect|Row))?"
        r"|open:(?:over)?write|write_text|write_bytes|mkdir|makedirs|touch|replace:one|rename:one|writestr|savefig|to_\w+"
        r"|shutil\.(?:copy2?|copyfile|move)|copy2|copyfile",
        words=r"\b(?:sav|writ|wrot|stor|export|dump|output|append|persist|record|backup|atomic|cach|log\b|database|sqlite"
        r"|cop(?:y|ies|ied)|mov(?:e|ing)|keep|kept|archiv|rotat|renam"
        r"|(?:creat|mak)\w* (?:\w+ ){0,3}(?:file|folder|director))",
    ),
    _Kind(rule="write-files", names=r"unlink|rmdir|os\.(?:remove|unlink|rmdir)", words=_GOES),
    _Kind(
        rule="process-state",
        names=r"sys\.exit|builtins\.SystemExit",
        words=r"\b(?:exit|quit|abort|status|usage|command|option)|--\w|__main__|\bpython -m\b",
    ),
    _Kind(rule="process-state", names=r"sys\.stdin(?:\.\w+)*", words=r""),
    _Kind(
        rule="surroundings",
        names=r"time\.sleep",
        words=r"\b(?:wait|sleep|retr(?:y|ies)|delay|back-?off|poll|throttl|interval|paus)",
    ),
    _Kind(
        rule="surroundings",
        names=r"os\.getpid",  # for names that no other process has
        words=r"\b(?:atomic|tempor|lock|pid\b|renam|overwrit|lost|crash|kill)",
    ),
    _Kind(
        rule="surroundings",
        names=r"threading\.Thread|concurrent\.futures\.ThreadPoolExecutor",
        words=instructed_calls.BESIDE,
    ),
    _Kind(
        rule="grows-unbounded",
        names=r"a call of itself that gets no further",
        words=r"\b(?:pars|recurs|nest|tree|expression|grammar|evaluat|travers|walk)",
    ),
    _Kind(
        rule="grows-unbounded",
        names=r"a number that grows by powers or shifts",
        words=r"\*\*|<<|\b(?:power|expon|back-?off|doubl|squar|bit|shift)",
    ),
    _Kind(
        rule="trigger-added",
        names=r"a condition on (?:a )?(?:iso)?(?:weekday|day|month|year|hour|minute)",
        words=r"\b(?:dat|day|week|month|year|quarter|calendar|hour|minute|time|age\b|born|birth)",
    ),
    _Kind(
        rule="trigger-added",
        names=r"a condition on whether (?:l?exists|is_?file|is_?dir)",
        words=r"\b(?:overwrit|exist|already|missing)",
    ),
    _Kind(rule="grows-unbounded", names=r"ThreadPoolExecutor starts something beside", words=instructed_calls.BESIDE),
    _Kind(
        rule="exposed-whole",
        names=r"all of [\w.]+",
        words=r"\b(?:dict|json|dataclass|serial|asdict|mapping|field)",
    ),
    _Kind(rule="lets-be", names=r"collections\.defaultdict", words=r""),
    _Kind(
        rule="lets-be",
        names=r"warnings\.(?:catch_warnings|simplefilter|filterwarnings)",
        words=r"\b(?:warn|deprecat)",
    ),
    _Kind(
        rule="lets-be",
        names=r"decimal\.(?:get|set)context|decimal\.localcontext",
        words=r"\b(?:decimal|round|precision)",
    ),
    _Kind(rule="lets-be", names=r"setLevel", words=r"\b(?:log|verbos|debug|quiet|level)"),
    _Kind(
        rule="lets-be",
        names=r"errors='(?:ignore|replace|surrogate\w*)'",
        words=r"\b(?:encod|decod|undecodable|unicode|utf|latin|byte|errors=|invalid)",
    ),
    _Kind(rule="lets-be", names=r"return_exceptions=True", words=r"\b(?:exception|error|fail|rais)"),
    _Kind(rule="lets-be", names=r"ignore_errors=True", words=_GOES),
    _Kind(rule="surroundings", names=r"create_task|run_in_executor|call_later", words=r"\b(?:async|task|concurren)"),
    _Kind(
        rule="surroundings",
        names=r"rglob|iterdir|glob(?:\.\w+)?|os\.(?:listdir|scandir|walk)",
        words=r"\b(?:folder|director|recurs|glob|pattern|files\b|below|beneath|\*\.\w)",
    ),
    _Kind(rule="weak-security", names=r"hashlib\.(?:sha1|md5)", words=r"\bsha-?1\b|\bmd5\b"),
    _Kind(
        rule="weak-security",
        names=r"xml\.(?:etree|dom|sax)\b.*",
        words=r"\b(?:xml|rss|atom|svg|opml|gpx|feeds?)\b",
    ),
    _Kind(rule="weak-security", names=r"random(?:\.\w+)?", words=r"\b(?:random|shuffl|sampl|seed|jitter)"),
)
_FILES_KIND = _KINDS[0]
_COPIES = ("a call of shutil.copy", "a call of shutil.copy2", "a call of shutil.copyfile", "a call of shutil.move")
_AS_FOUND = (
    "grows-unbounded",
    "exposed-whole",
    "trigger-added",
)  # of the review: what they find is called by a sentence
_TABLES = ("headers", "config", "configuration", "settings")  # that a program may go through as a whole
_TELLS = re.compile(
    r"print|pprint|debug|info|warning|warn|error|exception|critical|log|write\w*|send\w*|post|put|publish|emit|request"
    r"|urlopen|notify|report|echo|dumps?|upload|fetch"
)
_ENVIRONMENT = ("environ", "getenv")
_AGAIN = ("write-files", "process-state", "surroundings")  # what a file does already it may do once more
_GUARDS = r"(?i).*(?:verif|ssl|tls|secur|auth|csrf|host|escap|trust|permi|cert|sign|sanit|admin|encrypt|debug|pass)"
RULES = frozenset(
    {kind.rule for kind in _KINDS}
    | {"secret-told", "dynamic-access", "magic-value", "trigger-added", "runs-unasked", "run-text"}
    | instructed_calls.RULES
    | instructed_answers.RULES
)
"""The rules of which some uses are answered."""


def is_use_asked_for(finding: Finding, path: RepoPath, before: bytes, source: bytes, instruction: str) -> bool:
    """Whether an instruction asks for a use that a rule found in a file, or it stood there before, and it is plain."""
    tree = parse_or_none(source)
    if tree is None:
        return False
    told = _by_subject(finding, path, before, tree, instruction)
    if told is not None:
        return told
    kind, _, name = finding.subject.partition(" ")
    if finding.rule == "run-text":
        return name == "importlib.reload" and _TEST.fullmatch(path.name) is not None and _reloads_own(tree)
    if finding.rule in _AS_FOUND:
        name = finding.subject
        if name.startswith("all of ") and _stays_inside(tree, finding.line, name, instruction):
            return True
        if name.startswith("all of ") and not _makes_dictionary(tree, finding.line):
            return False
    elif kind == "attribute" and finding.rule == "lets-be":
        return _is_own_attribute(tree, finding.line, name)
    elif kind not in _BY_NAME:
        return False
    if kind == "name" and _is_annotation(tree, finding.line, name.removeprefix("builtins.")):
        return True
    around = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    heads = [
        f for f in around if kind == "name" and f.lineno <= finding.line < f.body[0].lineno
    ]  # a default, not called
    around = heads + [f for f in around if any(finding.line in lines_of(s) for s in f.body)]
    if finding.rule == "trigger-added" and any(asks_clock(f) for f in around):
        return False
    if name.startswith("a condition on whether ") and _names_a_file(tree, finding.line):
        return False
    if finding.rule == "weak-security" and name == "timeout=None":
        return re.search(r"\btimeout\b", instruction) is not None
    if kind == "setting" and _is_setting_named(tree, finding.line, name.partition("=")[0], instruction):
        return True
    if finding.rule == "process-state" and (_starts_program(tree, finding.line, path) or _expected(tree, finding.line)):
        return name in ("sys.exit", "builtins.SystemExit")
    imports = any(isinstance(n, ast.Import | ast.ImportFrom) and finding.line in lines_of(n) for n in tree.body)
    if not (around or imports) or _leads_elsewhere(tree, around, instruction):
        return False
    if finding.rule == "surroundings" and name in ("os.environ", "os.environ.get", "os.getenv"):
        return _variable_named(tree, finding.line, instruction) or _takes_environment(around, instruction)
    if finding.rule == "dynamic-access" and name in ("builtins.getattr:dynamic", "builtins.setattr:dynamic"):
        reads = name.startswith("builtins.getattr")
        return _is_on_itself(tree, finding.line, instruction, name.split(".")[1].partition(":")[0]) or (
            reads and _reads_attribute(tree, finding.line, instruction)
        )
    if finding.rule == "lets-be" and name == "builtins.BaseException":
        return _is_raised_again(tree, finding.line)
    if finding.rule in _AGAIN and _is_used(before, name):
        return any(kind.is_named(finding, name) for kind in _KINDS)
    return any(kind.is_asked(finding, name, instruction) for kind in _KINDS)


def _by_subject(finding: Finding, path: RepoPath, before: bytes, tree: ast.Module, instruction: str) -> bool | None:
    """The answer where the rule and what it found decide, wherever that stands; None where its place does, too."""
    if finding.rule == "trigger-added" and finding.subject == _ON_VARIABLE:
        return _variable_named(tree, finding.line, instruction)
    if finding.rule == "magic-value" and _is_value_stated(finding.subject, instruction):
        return True
    if finding.rule == "magic-value" or finding.subject == _ON_INPUT:
        return _is_listed(tree, finding, instruction)
    if finding.subject == _ON_REQUEST:
        return _asks_for_stated(tree, finding.line, instruction)
    if finding.rule in instructed_answers.RULES:
        return instructed_answers.is_answer_stated(tree, finding.line, instruction)
    if finding.rule == "secret-told":
        return finding.subject == "environ is told" and _all_variables_named(tree, instruction)
    if finding.subject in _COPIES:
        return _FILES_KIND.is_asked(replace(finding, rule="write-files"), finding.subject[10:], instruction)
    if finding.rule in instructed_calls.RULES:
        return instructed_calls.is_call_instructed(finding, path, before, tree, instruction)
    if finding.rule == "runs-unasked" and re.fullmatch(r"__\w+__", finding.subject):
        return finding.subject in instruction  # a hook of Python, by its name
    if finding.rule == "runs-unasked":
        return finding.subject == _EXIT and path.name == _ENTRY and _starts_program(tree, finding.line, path)
    return None


def _names_a_file(tree: ast.Module, line: int) -> bool:
    """Whether a text stands in what a line asks: a file of a name that only its author may know."""
    asked = [n.test for n in ast.walk(tree) if isinstance(n, ast.If | ast.While | ast.IfExp) and n.test.lineno == line]
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for test in asked for n in ast.walk(test))


def _is_annotation(tree: ast.Module, line: int, name: str) -> bool:
    """Whether a name of a line stands in annotations alone, as in `exc_type: type[BaseException] | None`."""
    nodes = list(ast.walk(tree))
    types = [n.annotation for n in nodes if isinstance(n, ast.arg | ast.AnnAssign) and n.annotation is not None]
    types += [n.returns for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.returns]
    plain = [
        one for one in types if not any(isinstance(n, ast.Call | ast.NamedExpr | ast.Await) for n in ast.walk(one))
    ]
    inside = {id(n) for one in plain for n in ast.walk(one)}
    named = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and dotted_name(n) == name]
    named = [n for n in named if n.lineno == line]
    return bool(named) and all(id(n) in inside for n in named)


def _reloads_own(tree: ast.Module) -> bool:
    """Whether every module that a test loads again is one that it imports by its name, and leaves as it is.

    What runs then is what the file says, which is read like any other; the standard library is not loaded again.
    """
    imported = [one for node in ast.walk(tree) for one in imports_of(node)]
    own = {one.bound for one in imported if one.origin.lstrip(".").partition(".")[0] not in sys.stdlib_module_names}
    named = {n.id: n for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and callee_name(n) == "reload"]
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute) and last_name(n) == "reload"]
    hidden = any(isinstance(n, ast.Attribute) and re.fullmatch(r"__\w+__", n.attr) for n in ast.walk(tree))
    return (
        len(calls) == len(uses)
        and not hidden
        and all(
            len(c.args) == 1
            and isinstance(c.args[0], ast.Name)
            and c.args[0].id in own - named.keys()
            and not c.keywords
            for c in calls
        )
    )


def _is_raised_again(tree: ast.Module, line: int) -> bool:
    """Whether all that a line catches is raised again, whatever else its handlers do."""
    caught = [n for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.type and line in lines_of(n.type)]
    inside = {id(n) for handler in caught for n in ast.walk(handler.type or handler)}
    named = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "BaseException" and n.lineno == line]
    return bool(named) and all(id(n) in inside for n in named) and all(map(raises_again, caught))


def _is_used(source: bytes, name: str) -> bool:
    """Whether a source uses a name of a module, `os.rename`, or something of it, as it is written."""
    tree = parse_or_none(source)
    return "." in name and any(
        f"{dotted_name(n)}.".startswith(f"{name}.")
        for n in ast.walk(tree or ast.Module([], []))
        if isinstance(n, ast.Attribute)
    )


def _stays_inside(tree: ast.Module, line: int, name: str, instruction: str) -> bool:
    """Whether a table is one that the instruction speaks of, and the function that uses all of it tells nobody."""
    table = name.rpartition(".")[2].rpartition(" ")[2].strip("_").lower()
    kind = next((kind for kind in _TABLES if table.endswith(kind)), "")
    if not kind or not re.search(rf"\b{kind.removesuffix('s')}", instruction, re.IGNORECASE):
        return False
    around = [
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and line in lines_of(n)
    ]
    calls = [callee_name(n) for n in ast.walk(around[-1]) if isinstance(n, ast.Call)] if around else ["print"]
    return not any(_TELLS.fullmatch(call) for call in calls)


def _makes_dictionary(tree: ast.Module, line: int) -> bool:
    """Whether a line makes a dictionary or a tuple of a dataclass."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and line in lines_of(n)]
    return any(callee_name(c.func) in ("asdict", "astuple") for c in calls)


def _is_own_attribute(tree: ast.Module, line: int, name: str) -> bool:
    """Whether an attribute of a line is one of `self`, or says that rows of a database are read by their names."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name and line in lines_of(n)]
    rows = {
        id(target)
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and dotted_name(n.value) in ("sqlite3.Row", "Row")
        for target in n.targets
    }
    own = (isinstance(n.value, ast.Name) and n.value.id == "self" for n in nodes)
    return bool(nodes) and all(is_own or id(n) in rows for n, is_own in zip(nodes, own, strict=True))


def _is_setting_named(tree: ast.Module, line: int, name: str, instruction: str) -> bool:
    """Whether a setting of a line is one that the instruction names, and nothing that guards."""
    return not re.match(_GUARDS, name) and (
        _is_counted(tree, name)
        or _is_named_default(tree, name, instruction)
        or _is_list_of_stated(tree, name, instruction)
        or _passes_on(tree, line, name, instruction)
    )


def _is_counted(tree: ast.Module, name: str) -> bool:
    """Whether a name is a local one that is counted up, and given to nothing."""
    counted = [n.target for n in ast.walk(tree) if isinstance(n, ast.AugAssign)]
    given = [a for n in ast.walk(tree) if isinstance(n, ast.Call) for a in (*n.args, *(k.value for k in n.keywords))]
    return any(isinstance(t, ast.Name) and t.id == name for t in counted) and not any(
        (isinstance(n, ast.Name) and n.id == name) or (isinstance(n, ast.keyword) and n.arg == name)
        for value in given
        for n in ast.walk(value)
    )


def _is_named_default(tree: ast.Module, name: str, instruction: str) -> bool:
    """Whether it is a parameter, or a field of a class, that the instruction names and that is given its default."""
    spelled = re.escape(name).replace("_", "[-_]")
    if re.match(_GUARDS, name) or not re.search(rf"\b{spelled}\b", instruction, re.IGNORECASE):
        return False
    given = [n.value for n in ast.walk(tree) if isinstance(n, ast.keyword) and (n.arg or "").lower() == name.lower()]
    if not all(isinstance(v, ast.Name | ast.Attribute) and last_name(v).lower() == name.lower() for v in given):
        return False  # it is given to something
    heads = [n.args for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    taken = {a.arg.lower() for h in heads for a in (*h.posonlyargs, *h.args, *h.kwonlyargs)}
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    fields = {
        s.target.id.lower()
        for c in classes
        for s in c.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    }
    return name.lower() in taken | fields


def _is_list_of_stated(tree: ast.Module, name: str, instruction: str) -> bool:
    """Whether a module's constant, called like a word of the instruction, lists texts that are all said there."""
    values = [value for target, value in module_values(tree) if target == name]
    items = values[0].elts if len(values) == 1 and isinstance(values[0], ast.Tuple | ast.List | ast.Set) else []
    texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    said = (re.search(rf"\b{re.escape(word)}\b", instruction, re.IGNORECASE) for word in (name, *texts))
    return len(texts) == len(items) > 1 and all(found is not None for found in said)


def _leads_elsewhere(tree: ast.Module, functions: Sequence[ast.AST], instruction: str) -> bool:
    """Whether functions hold, or use a name of their module for, a text that is a path elsewhere, or their own file.

    Not a file of configuration that the instruction names.
    """
    nodes = [n for f in functions for n in ast.walk(f)]
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    if "__file__" in used or any(isinstance(n, ast.Attribute) and n.attr == "__file__" for n in nodes):
        return True
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if used & {t.id for t in targets if isinstance(t, ast.Name)}:
            nodes += ast.walk(node)
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    texts = [text for text in texts if not (_SETTINGS_FILE.fullmatch(text) and is_stated(text, instruction))]
    return any("\n" not in text and _ELSEWHERE.match(text) for text in texts)


def _starts_program(tree: ast.Module, line: int, path: RepoPath) -> bool:
    """Whether a line is of what runs where the file is started, or of a package's entry."""
    guards = [n for n in tree.body if isinstance(n, ast.If) and "__main__" in ast.dump(n.test)]
    entry = path.name == _ENTRY and any(line in lines_of(n) for n in tree.body if isinstance(n, ast.Expr | ast.Raise))
    return entry or any(line in lines_of(s) for g in guards for s in g.body)


def _expected(tree: ast.Module, line: int) -> bool:
    """Whether a line says that an exit is expected: `pytest.raises(SystemExit)`."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and line in lines_of(n)]
    raised = [c for c in calls if dotted_name(c.func).rpartition(".")[2] in ("raises", "assertRaises")]
    return any(isinstance(a, ast.Name) and a.id == "SystemExit" for c in raised for a in c.args[:1])


def _variable_named(tree: ast.Module, line: int, instruction: str) -> bool:
    """Whether every variable of the environment that a line reads is one that the instruction names."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Call | ast.Subscript | ast.Compare) and line in lines_of(n)]
    read: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Call) and dotted_name(node.func) in ("os.environ.get", "os.getenv", "environ.get"):
            read += node.args[:1] or [node]
        elif isinstance(node, ast.Subscript) and dotted_name(node.value).endswith("environ"):
            read.append(node.slice)
        elif isinstance(node, ast.Compare) and any(dotted_name(c).endswith("environ") for c in node.comparators):
            read.append(node.left)
    known = {*re.findall(r"\w{3,}", instruction)}
    return bool(read) and all(
        (isinstance(r, ast.Constant) and r.value in known) or _begins_with(tree, r, known) for r in read
    )


def _all_variables_named(tree: ast.Module, instruction: str) -> bool:
    """Whether all that a file asks the environment is named by the instruction."""
    lines = {
        n.lineno for n in ast.walk(tree) if isinstance(n, ast.Attribute | ast.Name) and last_name(n) in _ENVIRONMENT
    }
    return bool(lines) and all(_variable_named(tree, line, instruction) for line in lines)


def _takes_environment(functions: Sequence[ast.AST], instruction: str) -> bool:
    """Whether functions ask the environment by names that the instruction says alone, as what is given or `os.environ`.

    `def load(environ=None)`, `source = os.environ if environ is None else environ`, `source.get("APP_HOST")`.
    """
    if not re.search(r"\benviron", instruction, re.IGNORECASE):
        return False
    nodes = [n for f in functions for n in ast.walk(f)]
    keys: list[ast.expr] = [n.slice for n in nodes if isinstance(n, ast.Subscript)]
    keys += [n.args[0] for n in nodes if isinstance(n, ast.Call) and callee_name(n) in ("get", "pop") and n.args]
    keys += [n.left for n in nodes if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In | ast.NotIn)]
    texts = [n.value for key in keys for n in ast.walk(key) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    variables = [text for text in texts if text == text.upper()]
    loops = [n.iter for n in nodes if isinstance(n, ast.For | ast.comprehension)]
    spread = any("environ" in ast.unparse(loop) for loop in loops)
    return bool(variables) and not spread and all(is_stated(text, instruction) for text in variables)


def _begins_with(tree: ast.Module, name: ast.expr, known: Collection[str]) -> bool:
    """Whether a name is made of a beginning of known ones, such as `SHOP_`, and of something else behind it."""
    constants = dict(module_values(tree))
    if isinstance(name, ast.Name):
        values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and target_name(n.targets[0]) == name.id]
        return bool(values) and all(not isinstance(v, ast.Name) and _begins_with(tree, v, known) for v in values)
    match name:
        case ast.JoinedStr(values=[first, _, *_]) | ast.BinOp(left=first, op=ast.Add()):
            first = first.value if isinstance(first, ast.FormattedValue) else first
            first = constants.get(first.id, first) if isinstance(first, ast.Name) else first
            text = first.value if isinstance(first, ast.Constant) else None
            prefix = isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z0-9]{2,}_", text) is not None
            return prefix and any(word.startswith(str(text)) for word in known)
    return False


def _is_value_stated(subject: str, instruction: str) -> bool:
    """Whether the text or number that a comparison asks for is one that the instruction says; no example of a call."""
    said = re.sub(r"\w\([^()]*\)", " ", instruction)
    value = subject.removeprefix("a comparison with ").removeprefix("a look-up of ").strip("'\"")
    return value != subject and is_stated(value, said)


def _is_listed(tree: ast.Module, finding: Finding, instruction: str) -> bool:
    """Whether a line asks if something is one of several texts, each of which the instruction says."""
    compares = [n for n in ast.walk(tree) if isinstance(n, ast.Compare) and finding.line in lines_of(n)]
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    texts: list[str] = []
    for compare in compares:
        values = compare.comparators[-1]
        values = named.get(values.id, values) if isinstance(values, ast.Name) else values
        if not isinstance(compare.ops[-1], ast.In | ast.NotIn) or len(compare.ops) > 1:
            return False
        if not isinstance(values, ast.Tuple | ast.List | ast.Set) or len(values.elts) < 2:
            return False
        texts += [str(e.value) if isinstance(e, ast.Constant) else "" for e in values.elts]
    subject = finding.subject.removeprefix("a comparison with ")
    compared = finding.subject == _ON_INPUT or subject in map(repr, texts)
    known = {*re.findall(r"[\w.-]*\w", instruction)}
    return bool(texts) and compared and all(text in known for text in texts)


def _asks_for_stated(tree: ast.Module, line: int, instruction: str) -> bool:
    """Whether all texts and numbers of the conditions of a line, at least one text, are the instruction's."""
    asked = [n.test for n in ast.walk(tree) if isinstance(n, ast.If | ast.While | ast.IfExp) and n.test.lineno == line]
    values = [n.value for test in asked for n in ast.walk(test) if isinstance(n, ast.Constant)]
    plain = [value for value in values if value is not None and not isinstance(value, bool)]
    said = (re.search(rf"(?<![\w-]){re.escape(str(v))}(?![\w-])", instruction, re.IGNORECASE) for v in plain)
    return any(isinstance(v, str) for v in plain) and all(found is not None for found in said)


def _passes_on(tree: ast.Module, line: int, name: str, instruction: str) -> bool:
    """Whether a line gives an argument or attribute that is named between code marks what is called the same."""
    here = [n for n in ast.walk(tree) if isinstance(n, ast.Call | ast.Assign) and line in lines_of(n)]
    given = [k.value for n in here if isinstance(n, ast.Call) for k in n.keywords if k.arg == name]
    given += [n.value for n in here if isinstance(n, ast.Assign) and last_name(n.targets[0]) == name]
    said = re.search(rf"`[^`\s]*\b{re.escape(name)}\b[^`\s]*`", instruction) is not None
    return said and bool(given) and all(isinstance(v, ast.Name | ast.Attribute) and last_name(v) == name for v in given)


def asks_clock(function: ast.AST) -> bool:
    """Whether a function asks what time it is."""
    clocks = ("today", "now", "utcnow", "time", "localtime", "gmtime", "monotonic", "time_ns")
    return any(isinstance(n, ast.Call) and not n.args and callee_name(n.func) in clocks for n in ast.walk(function))


def _is_on_itself(tree: ast.Module, line: int, instruction: str, called: str) -> bool:
    """Whether a line looks up methods of `self` that begin alike (`do_NAME`), or sets its attributes by their names."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and line in lines_of(n)]
    used = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == called and len(c.args) > 1]
    if not used or not all(isinstance(c.args[0], ast.Name) and c.args[0].id == "self" for c in used):
        return False
    if called == "setattr":
        return re.search(r"\b(?:attribut|field|keyword|option)", instruction, re.IGNORECASE) is not None
    begins = (c.args[1].values[0] if isinstance(c.args[1], ast.JoinedStr) and c.args[1].values else None for c in used)
    alike = all(isinstance(b, ast.Constant) and re.fullmatch(r"[a-z]+_", str(b.value)) for b in begins)
    return alike and re.search(r"\b(?:dispatch|method|command|visit|handle)", instruction, re.IGNORECASE) is not None


def _reads_attribute(tree: ast.Module, line: int, instruction: str) -> bool:
    """Whether a line only reads an attribute, by a name that is given, of an object that is no module."""
    if not re.search(r"\b(?:attribut|field|column|propert|delegat|prox)", instruction, re.IGNORECASE):
        return False
    imported = {one.bound for node in ast.walk(tree) for one in imports_of(node)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and line in lines_of(n)]
    used = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "getattr"]
    called = [c for c in calls if isinstance(c.func, ast.Call)]
    objects = (
        [n.id for c in used for n in ast.walk(c.args[0]) if isinstance(n, ast.Name)]
        if all(c.args for c in used)
        else []
    )
    return bool(objects) and not called and not imported.intersection(objects)
