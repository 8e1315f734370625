import re
from dataclasses import asdict
from pathlib import Path

import pytest

from localagent.domain.gate import Severity
from localagent.domain.policy import JailLevel, Permission, Switch
from localagent.errors import UsageFault
from localagent.policy.commands import denial_reason
from localagent.policy.load import load_policy, parse_policy

POLICIES = Path(__file__).parents[2] / "policies"
KEY = re.compile(
    r"(schema|name|max_\w+|swallowed\w+|special\w+|ruff|mypy|least_level|third\w+|known_names|require_\w+|approvals"
    r"|(bandit_)?deny_at|otherwise|people|by_asker) = "
)
LINE = re.compile(r"(?<=p\.toml):\d+:")
DEFAULT = (POLICIES / "default.toml").read_text()


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(UsageFault) as caught:
        parse_policy(text.encode(), "p.toml")
    assert caught.value.exit_code == 2
    assert "policy show" in caught.value.remedy
    return tuple(LINE.sub(":", fault) for fault in caught.value.faults)


def test_the_default_says_what_the_readme_says() -> None:
    policy = load_policy(POLICIES / "default.toml")
    assert policy.name == "default"
    assert policy.deny_at is Severity.MEDIUM
    assert policy.swallowed_exceptions is Permission.DENY
    assert policy.special_cased_tests is Permission.DENY
    assert policy.ruff is Switch.AUTO
    assert policy.least_jail_level is JailLevel.L2


def test_strict_is_never_wider_than_the_default() -> None:
    default, strict = (load_policy(POLICIES / f"{name}.toml") for name in ("default", "strict"))
    assert all(asdict(strict.size)[key] <= value for key, value in asdict(default.size).items())
    order = list(Severity)
    assert order.index(strict.deny_at) <= order.index(default.deny_at)
    assert order.index(strict.bandit_deny_at) <= order.index(default.bandit_deny_at)
    assert strict.least_jail_level >= default.least_jail_level
    assert {r.id for r in default.dangers} <= {r.id for r in strict.dangers}
    assert set(default.paths.denied) <= set(strict.paths.denied)
    loose, tight = default.dependencies, strict.dependencies
    assert set(tight.allow) <= set(loose.allow)
    assert set(loose.deny) <= set(tight.deny)
    assert set(tight.lock_files) <= set(loose.lock_files)
    assert tight.require_hashes >= loose.require_hashes
    assert (loose.approvals, tight.approvals) == (Permission.ALLOW, Permission.DENY)


def test_every_fault_is_listed_with_its_dotted_path() -> None:
    text = (
        DEFAULT.replace("max_files = 3", "max_files = true\nmax_flies = 3")
        .replace('ruff = "auto"', 'ruff = "sometimes"')
        .replace('name = "default"', "name = 7")
        .replace('severity = "high"', 'severity = "huge"', 1)
        .replace('"*.pyi"]', '"!*.pyi", 3]')
        .replace('least_level = "L2"', "")
    )
    faults = faults_of(text)
    for path in (
        "name: must be a text",
        "paths.editable[1]: a pattern cannot take another back",
        "paths.editable[2]: must be a text",
        "size.max_files: must be an integer from 1",
        "size.max_flies: unknown key",
        "checks.ruff: must be one of auto, always, never, not 'sometimes'",
        "jail.least_level: is missing",
        "danger.rule[0].severity: must be one of",
    ):
        assert sum(f.startswith(f"p.toml: {path}") for f in faults) == 1, (path, faults)
    assert len(faults) == 8


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "schema: is missing"),
        ("schema = 'localagent/policy/2'", "schema: must be 'localagent/policy/1'"),
        ("paths = 3", "paths: must be a table"),
        ("[[danger.rule]]\nid = 'A b'", "danger.rule[0].id: 'A b' is not lower case words"),
        ("[[danger.rule]]\nid = 'a'", "danger.rule[0].id: 'a' names nothing"),
        ("[[danger.rule]]\nid = 'a'\n[[danger.rule]]\nid = 'a'", "danger.rule[1].id: 'a' stands twice"),
        (
            "[[danger.rule]]\nid = 'a'\nnames = ['os system']",
            "danger.rule[0].names[0]: 'os system' is not a dotted name",
        ),
        ("[dependencies]\nallow = ['Flask']", "dependencies.allow[0]: 'Flask' is not a normalised name"),
        ("[dependencies]\nallow = ['*']", "dependencies.allow[0]: '*' is not a normalised name"),
        ("[dependencies]\nlock_files = ['../x']", "dependencies.lock_files[0]: '../x' is not a relative path"),
        ("[dependencies]\nlock_files = ['*/x']", "dependencies.lock_files[0]: '*/x' is not a relative path"),
        ("[dependencies]\nknown_names = '/etc/passwd'", "dependencies.known_names: '/etc/passwd' is not a relative"),
        ("[dependencies]\nknown_names = '*.txt'", "dependencies.known_names: a pattern is not one file"),
        ("[dependencies]\nrequire_hashes = 'true'", "dependencies.require_hashes: must be true or false, not 'true'"),
        ("[dependencies]\nrequire_hash = true", "dependencies.require_hash: unknown key"),
        ("[size]\nmax_files = 0xffff" + "f" * 9000, "size.max_files: must be an integer from 1 to 1000, not so large"),
        ("paths" + ".a" * 900 + " = 1", "paths.editable: is missing"),
        ("[approvals]\npeople = ['a b']", "approvals.people[0]: 'a b' is not the name of an account"),
        ("[[commands.rule]]\nargv = []", "commands.rule[0].argv: must be an array of words"),
        ("[[commands.rule]]\nargv = [[]]", "commands.rule[0].argv[0]: must be a word"),
        (
            "[[commands.rule]]\nid='a'\nanswer='deny'\nargv=['pip']\nmatch=['pytest']",
            "commands.rule[0].match[0]: 'pytest' is not what",
        ),
        (
            "[[commands.rule]]\nid='a'\nanswer='deny'\nargv=['pip']\nnot_match=['/bin/pip x']",
            "commands.rule[0].not_match[0]: '/bin/pip x' is what",
        ),
        ('[[commands.rule]]\nmatch=["a \'b"]', 'commands.rule[0].match[0]: "a \'b" is not a command'),
        ("[[commands.rule]]\nmatch=[]", "commands.rule[0].match: needs an example"),
        *(
            (f"[paths]\ndenied = ['a', {pattern}]", f"paths.denied[1]: {said}")
            for pattern, said in (
                ("'['", "'[' has a `[` without its `]`"),
                ("'src/[a'", "'src/[a' has a `[` without"),
                ("'[a/b]'", "'[a/b]' has a `[` without"),
                ("'x[]'", "'x[]' has a `[` without"),
                ("'[z-a].py'", "'[z-a].py' is no gitwildmatch pattern: bad character range"),
                ("'***'", "'***' has three `*` in a row"),
                ("'src/***/a'", "'src/***/a' has three `*`"),
                ("'a**.py'", "'a**.py' has `**` beside other letters"),
                ("'a/../b'", "'a/../b' has the part `..`"),
                ("'../a'", "'../a' has the part `..`"),
                ("'./a'", "'./a' has the part `.`"),
                ("'a//b'", "'a//b' has an empty part"),
                ("'//a'", "'//a' has an empty part"),
                ("'/'", "'/' names nothing"),
                ("'C:/x'", "'C:/x' is a place of a machine"),
                ("'~/x'", "'~/x' is a place of a machine"),
                ("'~root/x'", "'~root/x' is a place of a machine"),
                ("'a\\b'", "'a\\\\b' holds a backslash"),
                ("'a '", "'a ' begins or ends with a blank"),
                ("' a'", "' a' begins or ends with a blank"),
                ('"a\\u0000"', "'a\\x00' holds a control character"),
                ('"a\\tb"', "'a\\tb' holds a control character"),
                ("'# a'", "'# a' would be a comment"),
            )
        ),
        ("[danger]\nrule = 3", "danger.rule: must be an array of tables"),
        ("[danger]\nrule = [3]", "danger.rule[0]: must be a table"),
    ],
)
def test_a_wrong_file_says_why(text: str, fault: str) -> None:
    assert any(f.startswith(f"p.toml: {fault}") for f in faults_of(text))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "not TOML"),
        (b"a = ", "not TOML"),
        (b"a" * ((1 << 20) + 1), "larger than"),
        (b"a = " + b"[" * 5000, "not TOML"),
    ],
)
def test_what_is_not_toml_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UsageFault, match=reason):
        parse_policy(data, "p.toml")


def test_an_absent_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="cannot be read"):
        load_policy(tmp_path / "none.toml")
    with pytest.raises(UsageFault, match="cannot be read"):
        load_policy(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("n", [n for n, line in enumerate(DEFAULT.splitlines()) if KEY.match(line)])
def test_a_key_left_out_is_a_fault_never_a_default(n: int) -> None:
    lines = DEFAULT.splitlines()
    key = lines.pop(n).split(" ")[0]
    assert [f for f in faults_of("\n".join(lines)) if f.endswith(f"{key}: is missing")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n\n[size]\nmax_files = 0", "p.toml:4: size.max_files: must be"),
        ("[paths]\n# a\ndenied = [\n  'a',\n  '!b',\n]", "p.toml:5: paths.denied[1]: a pattern cannot"),
        ('\n[size]\nx = """\n[size]\n"""\ny = 1', "p.toml:6: size.y: unknown key"),
        ("[[danger.rule]]\nid = 'a'\n[[danger.rule]]\nid = 'B'", "p.toml:4: danger.rule[1].id: 'B' is not lower"),
        ("\n[size]\nmax_files = 3", "p.toml:2: size.max_depth: is missing"),
    ],
)
def test_a_fault_names_its_line(text: str, line: str) -> None:
    with pytest.raises(UsageFault) as caught:
        parse_policy(text.encode(), "p.toml")
    assert [f for f in caught.value.faults if f.startswith(line)]


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("default", "python -m pytest", ""),
        ("default", "anything at all", ""),
        ("default", "/usr/bin/sh -c x", "no-shell"),
        ("strict", "python -m pytest", ""),
        ("strict", "./python -m pytest", "otherwise"),
        ("strict", "make", "otherwise"),
        ("strict", "/opt/x/pip3 install a", "no-installing"),
    ],
)
def test_what_may_run_as_a_check(name: str, command: str, said: str) -> None:
    policy = load_policy(POLICIES / f"{name}.toml")
    why = denial_reason(policy.commands, command.split())
    assert (said in why) if said else not why
