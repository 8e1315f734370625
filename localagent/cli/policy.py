"""`localagent policy show|check|explain|test`: what holds and which layer says so, faults of files, rules, examples."""

import argparse
import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from localagent.app import Settings
from localagent.app.policies import OpenPolicy, check_file, open_policy
from localagent.app.rule_examples import try_all
from localagent.cli.actions import add_action
from localagent.cli.render import Render
from localagent.domain.policy import Policy
from localagent.errors import UsageFault
from localagent.gate.gate_rules_page import explained, explained_ids, page
from localagent.policy.flat_keys import facts
from localagent.policy.load import load_policy
from localagent.text.visible_text import shortened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`policy show`, `policy check FILE…`, `policy explain [RULE]`, `policy test`."""
    verbs = parser.add_subparsers(dest="policy_verb", metavar="VERB", required=True)
    show = add_action(verbs, "show", "print the policy in effect")
    show.add_argument("--layers", action="store_true", help="every key, its value and the layer that set it")
    check = add_action(verbs, "check", "list every fault of policy files")
    check.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a policy, a layer, or a pyproject.toml")
    explain = add_action(verbs, "explain", "a rule: why, what to do, examples; or all rules")
    explain.add_argument("rule", nargs="?", metavar="RULE", help="a rule's id, as findings name it; default: all rules")
    test = add_action(verbs, "test", "test every rule on its examples; exit 1 if one fails")
    for one in (show, explain, test):
        one.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
        one.add_argument("--repo", type=Path, metavar="DIR", help="read [tool.localagent] of this repository")
        one.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0, or 1 where an example fails; UsageFault lists every fault."""
    if args.policy_verb == "check":
        return _check(args.files, render)
    if args.repo is not None and not args.repo.is_dir():
        raise UsageFault(f"--repo: {args.repo} is not a directory")
    opened = open_policy(settings, args.policy, args.repo)
    if args.policy_verb == "explain":
        return _explain(args, opened.policy, render)
    if args.policy_verb == "test":
        return _test(args, opened.policy, load_policy(settings.policies_dir / "default.toml"), render)
    return _show(args, opened, render)


def _check(files: list[Path], render: Render) -> int:
    faults: list[str] = []
    remedy = ""
    for path in files:
        try:
            what = check_file(path)
        except UsageFault as fault:
            faults += fault.faults
            remedy = fault.remedy
        else:
            render.line(f"{path}: {what}")
    if faults:
        raise UsageFault(faults, remedy=remedy)
    return 0


def _show(args: argparse.Namespace, opened: OpenPolicy, render: Render) -> int:
    layered = opened.layered
    values = facts(opened.policy)
    if args.json:
        rows = [
            {"key": key, "value": _plain(value), "layer": layered.decided[key], "rule": key.count(".") > 1}
            for key, value in values.items()
        ]
        told = {"file": str(opened.path), **asdict(opened.policy), "layers": list(layered.layers), "decided": rows}
        render.json({**told, "without_effect": {layer: list(keys) for layer, keys in layered.without_effect.items()}})
    elif args.layers:
        for line in _layer_lines(opened, values):
            render.line(line)
    else:
        render.text(opened.source.decode("utf-8").rstrip("\n"))
        if len(layered.layers) > 1:
            render.note(f"this is the base policy only; {len(layered.layers) - 1} more layers tighten it: use --layers")
    return 0


def _layer_lines(opened: OpenPolicy, values: dict[str, object]) -> Iterator[str]:
    layered = opened.layered
    numbers = {name: n for n, name in enumerate(layered.layers, 1)}
    yield from (f"{n}  {name}" for name, n in numbers.items())
    yield ""
    width = max(map(len, values))
    for key, value in values.items():
        shown = "" if ".rule." in key else _short(_plain(value))
        yield f"{numbers[layered.decided[key]]}  {key:<{width}}  {shown}".rstrip()
    for layer, keys in layered.without_effect.items():
        for key in keys:
            yield f"\n{layer}: {key} has no effect: the earlier layers are as strict, and a layer can only tighten"


def _plain(value: object) -> object:
    """JSON types: tuples as lists, rules by their fields."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value  # type: ignore[call-overload]


def _short(value: object) -> str:
    if value is None:
        return "the built-in limit"
    if isinstance(value, list):
        lists = [v for v in value if isinstance(v, list)]
        if lists and len(lists) == len(value):
            return " and ".join(_short(v) for v in lists)
        text = ", ".join(map(str, value)) or "nothing"
        return text if len(text) <= 100 else f"{shortened(text, 100)} ({len(value)})"
    return str(value)


def _explain(args: argparse.Namespace, policy: Policy, render: Render) -> int:
    if args.rule is None and not args.json:
        render.text(page(policy).rstrip("\n"))
        return 0
    rules = explained_ids(policy) if args.rule is None else (args.rule,)
    found = [one for rule in rules for one in explained(rule, policy)]
    if not found:
        near = difflib.get_close_matches(args.rule, explained_ids(policy), n=3)
        like = f"did you mean {', '.join(near)}? " if near else ""
        remedy = f"{like}`localagent policy explain` lists every rule"
        raise UsageFault(f"there is no rule {args.rule!r}", remedy=remedy)
    if args.json:
        render.json({"rule": args.rule, "explained": [asdict(one) for one in found]})
        return 0
    for number, one in enumerate(found):
        if number:
            render.line()
        render.text(one.text.rstrip("\n"))
    return 0


def _test(args: argparse.Namespace, policy: Policy, default: Policy, render: Render) -> int:
    tried = list(try_all(policy, default))
    wrong = [one for one in tried if one.wrong]
    counts = Counter(str(one.kind) for one in tried)
    if args.json:
        failed = [asdict(one) for one in wrong]
        render.json(
            {
                "policy": policy.name,
                "rules": len({(t.kind, t.rule) for t in tried}),
                "examples": counts,
                "failed": failed,
            }
        )
        return 1 if wrong else 0
    for one in wrong:
        render.line(f"{one.rule} ({one.kind}) {one.example}: {one.wrong}")
    told = ", ".join(f"{count} of {kind} rules" for kind, count in counts.items())
    render.line(f"policy {policy.name}: {len(tried)} examples ({told}), {len(wrong)} wrong")
    return 1 if wrong else 0
