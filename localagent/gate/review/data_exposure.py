"""Sign: whole tables that hold secrets are spread out, or a secret goes into a text.

`{**app.config}`, `dict(request.headers)`, `vars()` and `asdict(user)` name no secret and hold all of them. Not seen:
tables under names that say nothing.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.gate.core.rule import became, inserted, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.gate.security.plain_uses import is_spelt_markup
from localagent.text.secret_names import SENSITIVE_NAME
from localagent.text.visible_text import shortened

_C = "class A:\n    def g(self):\n        return 1\n"

EXPOSED = question(
    id="exposed-whole",
    why="a whole table of settings, headers or fields is handed on, secrets among them, or a text is taken for safe",
    remedy="name the entries that are meant; escape texts instead of declaring them safe",
    match=(
        inserted("y = {**x.config}"),
        inserted("y = {k: str(v) for k, v in x.headers.items()}"),
        inserted("y = dict(x.session)"),
        inserted("log.warning('%s', vars())"),
        inserted("y = f'{locals()}'"),
        inserted("y = json.dumps(asdict(x.user))"),
        inserted("y = f'https://a.example/?t={x.api_key}'"),
        inserted("y = f'<img src=https://a.example/o.gif?u={x.email}>'"),
        inserted("y = '<img src=\"https://px.example/o.gif?i={ref}\">'.format(ref=x)"),
        inserted("put(x, ACL='public-read')"),
        inserted("y = g(x.db_pass.encode().hex())"),
        inserted("y = {'term': x.refresh_token}"),
        inserted("y = ';'.join(f'{o.email},{o.phone}' for o in x)"),
        inserted("x.pdf.set(x.diagnoses)"),
        inserted("y = f'use-{x.api_secret[::-1]}'"),
        inserted("y = f'{x.patient_name}|{x.birth_date}'.encode()"),
        inserted("y = ':'.join(x.form.values())"),
        inserted("x.headers['X-Debug'] = x.password"),
        inserted("y = settings.model_dump()"),
        inserted("y = str(x.settings)"),
        inserted("y = mark_safe(x)"),
        inserted("y = Markup('<b>{}</b>'.format(x))"),
        inserted("y = f'your password is {x}'"),
        inserted("y = ('name', 'password_hash')"),
        became(_C, _C + "\n    def __repr__(self):\n        return f'A({self.password})'\n"),
        became(_C, _C + "\n    def to_dict(self):\n        return {'key': self.api_key}\n"),
    ),
    not_match=(
        inserted("y = x.config['name']"),
        inserted("y = Markup('<br>')"),
        inserted("y = dict(x.rows)"),
        inserted("y = vars(x)['a']"),
        inserted("y = f'https://a.example/?t={x.page}'"),
        became(_C, _C + "\n    def __repr__(self):\n        return f'A({self.name})'\n"),
    ),
)
_TABLES = re.compile(
    r"(?i)^_?(?:\w*config(?:uration)?|\w*settings|headers|environ|env|cookies|session|META|__dict__|credentials?|secrets|form|POST|os_environ|token(?:s|_data))$"
)
_WHOLE = frozenset(
    {"dict", "str", "repr", "list", "tuple", "deepcopy", "copy", "format", "dumps", "pformat", "jsonify"}
)
_DECLARES = frozenset(
    {"Markup", "mark_safe", "SafeString", "SafeText", "format_html_join", "RawSQL", "TextClause", "HTML"}
)
_SPREADS = frozenset(
    {"items", "values", "copy", "to_dict", "as_dict", "dict", "model_dump", "model_dump_json", "json", "_asdict"}
)
_SECRET = re.compile(
    rf"(?i){SENSITIVE_NAME}|(?:refresh|session|reset)_?token|cvv|cvc|card_?number|ssn|seed_phrase|(?:^|_)otp(?:$|_)"
)
_PERSONAL = re.compile(
    r"(?i)e_?mail|phone|birth|surname|patient_?name|user_?name|session|cookie|token|address$|iban|balance"
)
_FIELD = re.compile(
    r"(?i)^(?:\w*passw(?:or)?d\w*|\w*secret\w*|iban|ssn|cvc|cvv|api_?key|card_?number|\w*_token|salary)$"
)
_SPELT = re.compile(r"(?i)(?:password|passphrase|secret|api.?key|pin|card number)\s*(?:is|:|=)\s*['\"]?$")
_HOST = re.compile(r"(?:https?:)?//\w[\w.-]*\.\w+")
_FILLED = re.compile(r"https?://[\w.-]+[^\s{}\"']*[?&=/][^\s{}\"']*(?:\{\w*\}|%[(s])")
_PUBLIC = re.compile(r"^(?:public-read(?:-write)?|authenticated-read|allUsers|AllUsers|allAuthenticatedUsers|anyone)$")
_INTIMATE = re.compile(
    r"(?i)^(?:db_pass(?:w\w*)?|\w*refresh_token|fernet_key|encryption_key|master_key|private_key|signing_key|session_key|seed_phrase"
    r"|api_key|api_secret|client_secret|diagnos[ei]s|medications?|icd_codes?|biometric\w*|social_security\w*|passport_\w+)$"
)


def exposed(source: Source) -> Signs:
    """Every table that is spread out, and every secret in a text of an object, a header or an address."""
    for node in source.nodes:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None and _is_table(value):
                    yield f"all of {shortened(ast.unparse(value), 40)}", node
                elif isinstance(value, ast.Attribute) and _INTIMATE.search(value.attr):
                    yield f"{value.attr} in a table", node
        elif isinstance(node, ast.Call):
            if callee_name(node.func) == "encode" and _is_personal(node):
                yield "what is known of a person, as bytes", node
            yield from ((what, node) for what in _called(node))
        elif isinstance(node, ast.FormattedValue):
            if _is_table(node.value) or (
                isinstance(node.value, ast.Call) and callee_name(node.value.func) in ("locals", "vars")
            ):
                yield f"all of {shortened(ast.unparse(node.value), 40)}", node
        elif isinstance(node, ast.JoinedStr):
            if _is_address(node) and (secret := _secret_in(node)):
                yield f"{secret} in an address", node
            elif secret := _secret_in(node):
                yield f"{secret} in a text", node
            elif sum(isinstance(v, ast.FormattedValue) and _is_personal(v.value) for v in node.values) > 1:
                yield "several things that are known of a person in a text", node
            elif _is_of_a_person(node):
                yield "what is known of a person in an address", node
            elif _is_spelt_out(node):
                yield "a secret is told in words", node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PUBLIC.search(node.value):
            yield "something is opened to everybody", node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _INTIMATE.search(node.attr):
            yield f"{node.attr} is read", node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILLED.search(node.value):
            yield "an address that is filled in", node
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            fields = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            yield from ((f"{field} among fields", node) for field in fields if _FIELD.match(field))
        elif isinstance(node, ast.Assign) and (secret := _secret_in(node.value)):
            tables = [t for t in node.targets if isinstance(t, ast.Subscript) and _is_table(t.value)]
            yield from ((f"{secret} in {shortened(ast.unparse(table), 40)}", node) for table in tables)


def _called(node: ast.Call) -> Iterator[str]:
    name = callee_name(node.func)
    if name in _DECLARES and not is_spelt_markup(node):
        yield f"{name} declares a text safe"
    elif name in ("vars", "locals", "globals") and not node.args:
        yield f"all of {name}()"
    elif name in ("asdict", "astuple", "model_to_dict") and node.args:
        yield f"all of {shortened(ast.unparse(node.args[0]), 40)}"
    elif name in _SPREADS and isinstance(node.func, ast.Attribute) and _is_table(node.func.value):
        yield f"all of {shortened(ast.unparse(node.func.value), 40)}"
    elif name in _WHOLE and isinstance(node.func, ast.Name | ast.Attribute):
        yield from (f"all of {shortened(ast.unparse(a), 40)}" for a in node.args if _is_table(a))
    elif name in ("set_cookie", "add_header", "setheader", "putheader", "set_header"):
        yield from (f"{secret} in {name}" for secret in map(_secret_in, node.args) if secret)


def _is_table(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and _TABLES.match(callee_name(node)) is not None


def _is_address(node: ast.JoinedStr) -> bool:
    return any(isinstance(v, ast.Constant) and re.search(r"https?://|[?&]\w*=$", str(v.value)) for v in node.values)


def _is_of_a_person(node: ast.JoinedStr) -> bool:
    """Whether an address of a named host carries an email or the like: `f"https://a.example/?u={x.email}"`."""
    return any(isinstance(v, ast.Constant) and _HOST.search(str(v.value)) for v in node.values) and any(
        isinstance(v, ast.FormattedValue) and _is_personal(v.value) for v in node.values
    )


def _is_personal(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name | ast.Attribute) and _PERSONAL.search(callee_name(n)) for n in walk(node))


def _is_spelt_out(node: ast.JoinedStr) -> bool:
    """`f"your password is {x}"`."""
    pieces = [(v, after) for v, after in zip(node.values, node.values[1:], strict=False)]
    return any(
        isinstance(v, ast.Constant) and isinstance(after, ast.FormattedValue) and _SPELT.search(str(v.value))
        for v, after in pieces
    )


def _secret_in(node: ast.AST) -> str:
    for inner in walk(node):
        if isinstance(inner, ast.Name | ast.Attribute) and _SECRET.search(callee_name(inner)):
            return callee_name(inner)
    return ""


CHECKS = ((EXPOSED, newly(exposed)),)
