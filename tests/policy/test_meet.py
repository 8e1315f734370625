"""The law of layers: what an earlier layer denies, the joined policy denies, whatever a later layer says."""

import pickle
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from localagent.domain.gate import Severity
from localagent.domain.policy import JailLevel, LeastStrength, Permission, Policy, Switch
from localagent.gate.rule_catalogue import for_a_person, own_ids
from localagent.policy import policy_layers
from localagent.policy.commands import denial_reason
from localagent.policy.flat_keys import facts
from localagent.policy.limits import BUILT_IN
from localagent.policy.load import load_policy, parse_policy_toml
from localagent.policy.policy_layers import LAYER_SCHEMA, PolicySource, combine, meet

POLICIES = Path(__file__).parents[2] / "policies"
DEFAULT = (POLICIES / "default.toml").read_bytes()
NAMES = ("default", "strict", "permissive", "appliance")
PATHS = ("a.py", "pkg/a.py", "tests/a.py", "setup.py", "app/auth/b.py", "docs/x.md", "conftest.py", "vendor/c.py")
RULES = ("B101", "test-framework", "write-files", "knows-tests", "run-process")
DANGERS = ("run-process", "test-framework", "surroundings", "mine")
GATE_IDS = ("secret-token", "critical-file", "patch-malformed", "test-deleted", "gate-error")  # of the gates' own code
COMMANDS = ("pytest -q", "python -m pytest", "sh -c x", "make", "pip install x", "./pytest", "python3.12 -m mypy")
PACKAGES = ("flask", "flask-login", "numpy", "requests", "left-pad")
CRITICAL_NAMES = ("verify*", "*ledger*")
CRITICAL_USES = ("hmac", "stripe.Charge")
LOCKS = ("pylock.toml", "requirements.txt", "requirements-dev.txt", "x/requirements.txt")
PEOPLE = ("*", "ann", "bob", "root")


@lru_cache(maxsize=1_000)
def read_once(data: bytes, source: str) -> bytes:
    return pickle.dumps(parse_policy_toml(data, source))


@pytest.fixture(autouse=True, scope="module")
def _texts_are_read_once() -> Iterator[None]:
    """The same policies stand under the layers of every example: each text is parsed once, and handed out anew."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(policy_layers, "parse_policy_toml", lambda data, source: pickle.loads(read_once(data, source)))
        yield


patterns = st.lists(
    st.sampled_from(["*.py", "*", "pkg/", "tests/", "a.py", "*.md", "docs/", "setup.py", "app/**"]), max_size=4
)
count = st.integers(1, 900)
permission = st.sampled_from(["allow", "deny"])


ANSWERED = ("guard-gone", "test-changed", "magic-value")


def some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


size = some(
    max_files=count,
    max_hunks=count,
    max_changed_nodes=count,
    max_changed_lines=count,
    max_changed_bytes=count,
    max_file_bytes=count,
    max_depth=st.integers(1, 200),
)
rule = st.builds(
    lambda answer, words: {
        "id": "r", "answer": answer, "why": "w", "argv": words, "match": [" ".join(words)], "not_match": [],
    },
    permission,
    st.sampled_from([["pytest"], ["python", "-m"], ["make"], ["sh"]]),
)  # fmt: skip
danger = st.builds(
    lambda name, names, severity, asks: {
        "id": name, "why": "w", "severity": severity, "names": names, "match": [], "not_match": [], "asks_person": asks,
    },
    st.sampled_from((*DANGERS, *GATE_IDS)),
    st.sampled_from([["subprocess"], ["os"], ["*.x"]]),
    st.sampled_from([s.value for s in Severity]),
    st.booleans(),
)  # fmt: skip
layers = some(
    paths=some(editable=patterns, denied=patterns, tests=patterns),
    size=size,
    repair=some(swallowed_exceptions=permission, special_cased_tests=permission),
    checks=some(
        bandit_deny_at=st.sampled_from([s.value for s in Severity]),
        ruff=st.sampled_from([s.value for s in Switch]),
        mypy=st.sampled_from([s.value for s in Switch]),
        unanswered=permission,
    ),
    jail=some(least_level=st.sampled_from([s.value for s in JailLevel]), third_party_binaries=permission),
    limits=some(
        memory_mib=count,
        processes=st.integers(1, 128),
        cpu_seconds=count,
        wall_seconds=st.integers(1, 600),
        file_mib=st.integers(1, 256),
        disk_mib=st.integers(1, 512),
    ),
    verification=some(
        min_strength=st.sampled_from([s.value for s in LeastStrength]),
        accept_at=st.sampled_from([0, 0.5, 0.9, 0.97, 1]),
    ),
    dependencies=some(
        allow=st.lists(st.sampled_from([*PACKAGES, "flask-*", "n*"]), max_size=4),
        deny=st.lists(st.sampled_from([*PACKAGES, "flask-*"]), max_size=3),
        lock_files=st.lists(st.sampled_from([*LOCKS, "requirements*.txt", "*"]), max_size=3),
        require_hashes=st.booleans(),
        approvals=permission,
    ),
    commands=some(otherwise=permission, rule=st.lists(rule, max_size=1)),
    approvals=some(people=st.lists(st.sampled_from(PEOPLE), max_size=3), by_asker=permission),
    patches=some(
        editable=patterns,
        denied=patterns,
        critical=patterns,
        critical_names=st.lists(st.sampled_from(CRITICAL_NAMES), max_size=2),
        critical_uses=st.lists(st.sampled_from(CRITICAL_USES), max_size=2),
        dependencies=patterns,
        test_configuration=patterns,
        tests=permission,
        weaker_tests=permission,
        routine=permission,
        allowed_in_tests=st.lists(st.sampled_from(RULES), max_size=4),
        size=size,
    ),
    instruction=some(
        editable=patterns,
        denied=patterns,
        critical=patterns,
        new_tests=permission,
        answered=st.lists(st.sampled_from(ANSWERED), max_size=3),
        size=size,
    ),
    danger=some(deny_at=st.sampled_from([s.value for s in Severity]), rule=st.lists(danger, max_size=1)),
)


def toml(values: dict[str, Any], prefix: str = "") -> str:
    lines: list[str] = []
    for key, value in values.items():
        if not isinstance(value, dict) and not (value and isinstance(value, list) and isinstance(value[0], dict)):
            lines.append(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}")
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"[{prefix}{key}]", toml(value, f"{prefix}{key}.")]
        elif value and isinstance(value, list) and isinstance(value[0], dict):
            for item in value:
                lines += [f"[[{prefix}{key}]]", toml(item)]
    return "\n".join(lines)


@lru_cache(maxsize=100_000)  # most lists are the base policy's, in every example
def matched(patterns: tuple[str, ...], path: str) -> bool:
    return compiled(patterns).match_file(path)


@lru_cache(maxsize=10_000)
def compiled(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(patterns)


def matches(lists: tuple[tuple[str, ...], ...], path: str) -> bool:
    return all(matched(one, path) for one in lists)


def allowed(policy: Policy) -> set[object]:
    """Everything a policy allows, over all that this module knows of; each a fact that a tighter policy may lack."""
    from fnmatch import fnmatchcase

    p, q, d = policy.paths, policy.patches, policy.dependencies
    order = list(Severity)
    found: set[object] = set()
    for path in PATHS:

        def hit(patterns: tuple[str, ...], path: str = path) -> bool:
            return matches((patterns,), path)

        if matches((p.editable, *p.narrowed), path) and not hit(p.denied) and not hit(p.tests):
            found.add(("repair", path))
        named = matches((q.editable, *q.narrowed), path) and not hit(q.denied)
        if named and not (q.tests is Permission.DENY and hit(p.tests)):
            found.add(("patch", path))
        found |= {(key, path) for key in ("critical", "dependencies", "test_configuration") if not hit(getattr(q, key))}
        if not hit(p.tests):
            found.add(("weakened like a source", path))
        found |= {("let be", path, rule) for rule in q.allowed_in_tests if hit(q.lenient)}
    found |= {("no critical name", name) for name in CRITICAL_NAMES if name not in q.critical_names}
    found |= {("no critical use", name) for name in CRITICAL_USES if name not in q.critical_uses}
    found |= {"routine is let be"} if q.routine is Permission.ALLOW else set()
    found |= {"tests may be made weaker"} if q.weaker_tests is Permission.ALLOW else set()
    for name, rules in (("size", policy.size), ("patches.size", q.size)):
        found |= {(name, f.name, n) for f in fields(rules) for n in range(1, 1000, 111) if n <= getattr(rules, f.name)}
    if (i := policy.instruction) is not None:
        wide = [p for p in PATHS if matches((i.editable, *i.narrowed), p) and not matches((i.denied,), p)]
        found |= {("instructed", path) for path in wide}
        found |= {("instructed without a person", path) for path in PATHS if not matches((i.critical,), path)}
        found |= {"new tests"} if i.new_tests is Permission.ALLOW else set()
        found |= {("answered", rule) for rule in ANSWERED if rule in i.answered}
        found |= {("i", f.name, n) for f in fields(i.size) for n in range(1, 1000, 111) if n <= getattr(i.size, f.name)}
    for key, most in BUILT_IN.items():
        limit = getattr(policy.limits, key)
        found |= {(key, n) for n in (*range(1, most, max(1, most // 40)), most) if limit is None or n <= limit}
    found |= {("danger", s) for s in order if order.index(s) < order.index(policy.deny_at)}
    found |= {("bandit", s) for s in order if order.index(s) < order.index(policy.bandit_deny_at)}
    table = {(r.id, r.names, r.severity, r.asks_person) for r in policy.dangers}
    found |= {("no danger", *r) for r in ALL_DANGERS - table}
    there, person = {r.id for r in policy.dangers} | own_ids(), for_a_person(policy)
    ids = {r[0] for r in ALL_DANGERS} | own_ids()
    found |= {("a person at most is asked", i) for i in ids if i not in there or i in person}
    for key in ("swallowed_exceptions", "special_cased_tests", "third_party_binaries", "unanswered"):
        found |= {key} if getattr(policy, key) is Permission.ALLOW else set()
    for tool in ("ruff", "mypy"):
        switch = getattr(policy, tool)
        found |= {(tool, "off")} if switch is Switch.NEVER else set()
        found |= {(tool, "off unless configured")} if switch is not Switch.ALWAYS else set()
    found |= {("jail", level) for level in JailLevel if level >= policy.least_jail_level}
    found |= {
        ("strength", s) for n, s in enumerate(LeastStrength) if n >= list(LeastStrength).index(policy.min_strength)
    }
    found |= {("confidence", p) for p in (0.0, 0.5, 0.7, 0.9, 0.97, 1.0) if p >= policy.accept_at}
    for package in PACKAGES:
        if any(fnmatchcase(package, a) for a in d.allow) and not any(fnmatchcase(package, a) for a in d.deny):
            found.add(("package", package))
        if not any(fnmatchcase(package, a) for a in d.deny):
            found.add(("package may be locked or approved", package))
    found |= {("lock", lock) for lock in LOCKS if any(_same_folder(lock, pattern) for pattern in d.lock_files)}
    found |= set() if d.require_hashes else {"no hashes"}
    found |= {"dependency approvals"} if d.approvals is Permission.ALLOW else set()
    found |= {("command", c) for c in COMMANDS if not denial_reason(policy.commands, c.split())}
    people = policy.approvals.people
    found |= {("approves", one) for one in ("ann", "bob", "root", "eve") if one in people or "*" in people}
    found |= {"own approval"} if policy.approvals.by_asker is Permission.ALLOW else set()
    return found


def _same_folder(path: str, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return path.rpartition("/")[0] == pattern.rpartition("/")[0] and fnmatchcase(
        path.rpartition("/")[2], pattern.rpartition("/")[2]
    )


ALL_DANGERS = {
    *(
        (r.id, r.names, r.severity, r.asks_person)
        for name in NAMES
        for r in load_policy(POLICIES / f"{name}.toml").dangers
    ),
    *(
        (i, n, s, a)
        for i in (*DANGERS, *GATE_IDS)
        for n in (("subprocess",), ("os",), ("*.x",))
        for s in Severity
        for a in (False, True)
    ),
}  # fmt: skip


@pytest.mark.long
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMES), st.lists(layers, min_size=1, max_size=2), st.none() | layers)
def test_no_layer_allows_what_an_earlier_one_denies(
    name: str, system: list[dict[str, Any]], repository: dict[str, Any] | None
) -> None:
    base = PolicySource(name=name, data=(POLICIES / f"{name}.toml").read_bytes())
    sources = [
        PolicySource(name=f"{n}.toml", data=f"schema = {LAYER_SCHEMA!r}\n{toml(layer)}".encode())
        for n, layer in enumerate(system)
    ]
    project = None
    if repository is not None:
        project = PolicySource(name="pyproject.toml", data=toml({"tool": {"localagent": repository}}).encode())
    before = None
    for at in range(len(sources) + 1):
        whole = allowed(combine(base, sources[:at], None, DEFAULT).policy)
        assert before is None or whole <= before
        before = whole
    assert before is not None
    assert allowed(combine(base, sources, project, DEFAULT).policy) <= before


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layers, layers)
def test_a_layer_has_its_say(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What a layer alone, over the default, denies is denied under the layer after it too; twice is as once."""
    base = PolicySource(name="default", data=DEFAULT)
    sources = [
        PolicySource(name=n, data=f"schema = {LAYER_SCHEMA!r}\n{toml(layer)}".encode())
        for n, layer in (("a", one), ("b", other))
    ]
    joined = allowed(combine(base, sources, None, DEFAULT).policy)
    for source in sources:
        assert joined <= allowed(combine(base, [source], None, DEFAULT).policy)
    assert joined == allowed(combine(base, [*sources, *sources], None, DEFAULT).policy)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_meets_itself_unchanged(name: str) -> None:
    policy = load_policy(POLICIES / f"{name}.toml")
    assert meet(policy, policy) == policy


def test_every_key_of_a_policy_meets() -> None:
    """Strict over permissive is nowhere permissive: a key that `meet` forgets would stay as it was."""
    loose, tight = (load_policy(POLICIES / f"{name}.toml") for name in ("permissive", "strict"))
    joined, wanted = facts(meet(loose, tight)), facts(meet(tight, loose))
    differ = {key for key, value in facts(loose).items() if facts(tight).get(key) != value} - {"name"}
    assert len(differ) >= 12
    assert {key for key in differ if joined.get(key) == facts(loose)[key] != wanted.get(key)} == set()


def test_the_law_looks_at_every_key() -> None:
    """Every key of the default policy can be given by the layers that are generated, or is known not to be one."""
    text = tomllib.loads(DEFAULT.decode())
    generated = set()

    def keys(strategy: Any, path: str) -> None:
        wrapped = strategy.wrapped_strategy if hasattr(strategy, "wrapped_strategy") else strategy
        for key, inner in (getattr(wrapped, "optional", None) or {}).items():
            generated.add(f"{path}{key}")
            keys(inner, f"{path}{key}.")

    keys(layers, "")
    named = {f"{s}.{k}" for s, table in text.items() if isinstance(table, dict) for k in table}
    named |= {f"patches.size.{k}" for k in text["patches"]["size"]} | {f"limits.{k}" for k in BUILT_IN}
    assert named - generated == {"dependencies.known_names"}
