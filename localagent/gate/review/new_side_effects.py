"""Sign: a new call in a source that reaches outside already: programs, networks, stores, native code.

Where a module holds such a handle, no dangerous name need come to do harm: `git("push", "--mirror")` is a call of its
own helper. So every new call by way of a handle is asked about: of what is imported, of what was made from it, and of
own functions that use it, if these are told what to do by constants. Not seen: handles that come as
arguments without an annotation.
"""

import ast
from collections.abc import Iterator

from localagent.code.bindings import assignments, target_name
from localagent.code.function_pairing import functions
from localagent.code.names import callee_name, imports_of
from localagent.code.regions import walk
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.visible_text import shortened

_GIT = "import subprocess\n\n\ndef git(*a):\n    subprocess.run(['git', *a])\n\n\ndef f(x):\n    git('add', x)\n"
_LIB = "import ctypes\nLIB = ctypes.CDLL(None)\n\n\ndef f(x):\n    return LIB.getpid()\n"
_TK = (
    "import tkinter\n\n\nclass A:\n    def __init__(self, root: tkinter.Tk):\n        self.root = root\n\n"
    "    def f(self, x):\n        self.root.title(x)\n"
)
_S3 = "import boto3\n\n\ndef f(x):\n    s3 = boto3.client('s3')\n    s3.upload_file(x, 'a', 'b')\n"
_VIEW = "from django.http import JsonResponse, HttpResponse\n\n\ndef f(x):\n    return JsonResponse({'id': x.id})\n"

ACTS = question(
    id="acts-outside",
    why="a source that starts programs, speaks to others or keeps their data does more of it",
    remedy="have a person confirm what the new call does, and with what",
    match=(
        became(_GIT, _GIT + "    git('push', '--force')\n"),
        became(_LIB, _LIB.replace("LIB.getpid()", "LIB['abort'](x)")),
        became(_TK, _TK + "        self.root.tk.call('exec', x)\n"),
        became(_S3, _S3 + "    s3.copy_object(Bucket='z', Key='b')\n"),
        became(_VIEW, _VIEW.replace(" return", " JsonResponse(vars(x))\n    return")),
        became(_VIEW, _VIEW.replace(" return", " HttpResponse('<script src=a>')\n    return")),
    ),
    not_match=(
        became(_GIT, _GIT + "    x.append('added')\n"),
        became(_GIT, _GIT.replace("git('add', x)", "git('add', x.name)")),
        became(_S3, _S3 + "    log.info('done')\n    return x\n"),
        became(
            _VIEW,
            _VIEW.replace(
                " return", " if x is None:\n        return JsonResponse({'error': 'no x'}, status=400)\n    return"
            ),
        ),
        became("def f(x):\n    return x\n", "def f(x):\n    x.push('--force')\n    return x\n"),
    ),
)
_OUTSIDE = frozenset(
    {"subprocess", "ctypes", "cffi", "tkinter", "socket", "requests", "httpx", "aiohttp", "urllib", "urllib3", "http",
     "ftplib", "smtplib", "imaplib", "poplib", "telnetlib", "paramiko", "fabric", "boto3", "botocore", "google",
     "azure", "redis", "pymongo", "psycopg", "psycopg2", "asyncpg", "sqlite3", "sqlalchemy", "pymysql", "django",
     "kafka", "pika", "zmq", "grpc", "websockets", "docker", "kubernetes", "shutil", "winreg", "pty", "pexpect", "code",
     "timeit", "importlib", "runpy", "pickle", "marshal", "shelve", "dill", "multiprocessing", "signal", "crontab",
     "xmlrpc", "ldap3", "slack_sdk", "telegram", "minio", "git", "pygit2", "dulwich", "sh", "plumbum", "celery", "ssl",
     "hvac", "consul", "etcd3", "elasticsearch", "sentry_sdk", "twilio", "sendgrid", "stripe", "openai", "anthropic"}
)  # fmt: skip
_PURE = frozenset(
    {"quote", "unquote", "urlencode", "urlparse", "urlsplit", "urlunsplit", "urlunparse", "urljoin", "parse_qs",
     "parse_qsl", "quote_plus", "which", "list2cmdline", "getLogger", "strip", "split", "decode", "encode", "get",
     "items", "keys", "values", "format", "join", "fileno", "default_timer", "get_terminal_size", "version", "metadata",
     "resources", "files", "strsignal", "splitlines", "lower", "upper", "startswith", "endswith", "quote_from_bytes"}
)  # fmt: skip
_ANSWERS = frozenset({"JsonResponse", "HttpResponse", "HttpResponseBadRequest", "HttpResponseForbidden",
                      "HttpResponseNotFound", "HttpResponseNotAllowed", "HttpResponseServerError"})  # fmt: skip
_ROUNDS = 3


def acts(source: Source) -> Signs:
    """Calls by way of a handle on the outside; what is only imported is another rule's."""
    handles = set(_imported(source.tree))
    if not handles:
        return
    handles |= _made(source.tree.body, handles)
    given = {a.arg for a in source.nodes if isinstance(a, ast.arg) and a.annotation and _root(a.annotation) in handles}
    for node in source.nodes:
        if isinstance(node, ast.Assign):
            attributes = [t.attr for t in node.targets if isinstance(t, ast.Attribute) and _root(t) == "self"]
            made = isinstance(node.value, ast.Call) and _root(node.value) in handles
            if made or (isinstance(node.value, ast.Name) and node.value.id in given):
                handles |= {f".{name}" for name in attributes}
    own = [(name.rpartition(".")[2], function) for name, function in functions(source.tree)]
    helpers = {name for name, f in own if any(isinstance(n, ast.Name) and n.id in handles for n in walk(f))}
    for name, function in own:
        annotated = {a.arg for a in walk(function) if isinstance(a, ast.arg)} & given
        known = handles | annotated | _made(function.body, handles)
        for node in walk(function):
            if isinstance(node, ast.Call) and callee_name(node.func) not in _PURE:
                if _hangs_on(node.func, known) and not _answers_a_constant(node):
                    yield f"a call of {shortened(ast.unparse(node.func), 60)}", node
                elif callee_name(node.func) in helpers - {name} and _has_text_argument(node):
                    yield f"a call of {callee_name(node.func)} with {shortened(_texts(node), 60)}", node


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        yield from (name.bound for name in imports_of(node) if name.module.partition(".")[0] in _OUTSIDE)


def _made(body: list[ast.stmt], handles: set[str]) -> set[str]:
    """Names that are set from a call of a handle, or opened by one."""
    found: set[str] = set()
    nodes = [n for s in body for n in walk(s)]
    for _ in range(_ROUNDS):
        before = len(found)
        for node in nodes:
            if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                if _root(node.context_expr) in handles | found:
                    found.add(node.optional_vars.id)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                for target, value in assignments(node):
                    if isinstance(value, ast.Call) and _root(value) in handles | found and _is_maker(value):
                        found.add(target_name(target))
        if len(found) == before:
            break
    return found - {""}


def _is_maker(node: ast.Call) -> bool:
    """Whether a call gives a handle and not an answer: a class, or a name that says so."""
    name = callee_name(node.func)
    return name[:1].isupper() or name in (
        "client", "resource", "connect", "session", "socket", "create_connection", "open", "from_env", "bind", "cursor",
        "init", "create_engine", "from_url",
    )  # fmt: skip


def _hangs_on(func: ast.expr, handles: set[str]) -> bool:
    """Whether what is called is reached from a handle, or from an attribute of one's own that holds one."""
    node: ast.AST = func
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute) and f".{node.attr}" in handles and isinstance(node.value, ast.Name):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in handles


def _answers_a_constant(node: ast.Call) -> bool:
    """Whether a call makes a view's answer of constants alone, without markup: nothing of the program's goes out."""
    if callee_name(node.func) not in _ANSWERS:
        return False
    parts = [part for argument in (*node.args, *node.keywords) for part in ast.walk(argument)]
    plain = (ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.keyword, ast.Load)
    markup = any(isinstance(p, ast.Constant) and "<" in str(p.value) for p in parts)
    return not markup and all(isinstance(p, plain) for p in parts)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_text_argument(node: ast.Call) -> bool:
    given = [*node.args, *(k.value for k in node.keywords)]
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for a in given for n in walk(a))


def _texts(node: ast.Call) -> str:
    given = [*node.args, *(k.value for k in node.keywords)]
    return " ".join(repr(n.value) for a in given for n in walk(a) if isinstance(n, ast.Constant))


CHECKS = ((ACTS, newly(acts)),)
