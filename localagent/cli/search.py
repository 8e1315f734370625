"""`localagent search`: words, identifiers or a sentence, ranked; or every match of a text or expression."""

import argparse
from dataclasses import asdict

from localagent.app import Settings
from localagent.app.code.repository_index import HitKind
from localagent.app.code.search_code import SearchAnswer, ShownHit, search_expression, search_text
from localagent.cli.index_progress import add_repo, opened
from localagent.cli.render import Render
from localagent.errors import UsageFault

MAX_LIMIT = 1_000
_PLACES = "path:line:col"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("text", metavar="TEXT", help="words, an identifier or a sentence: 'where are tokens redacted'")
    parser.add_argument("--kind", choices=[kind.value for kind in HitKind], help="only results of this kind")
    exact = parser.add_mutually_exclusive_group()
    exact.add_argument("--literal", action="store_true", help="every line that holds TEXT as it is")
    exact.add_argument("--regex", action="store_true", help="every line that matches the regular expression TEXT")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="most results (default: 10)")
    parser.add_argument("--format", choices=[_PLACES], help="one line for each result, as editors read it")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_repo(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when something was found, else 1."""
    if not 1 <= args.limit <= MAX_LIMIT:
        raise UsageFault(f"--limit must be between 1 and {MAX_LIMIT:,}, not {args.limit}")
    if not args.text.strip():
        raise UsageFault("nothing to search for", remedy="name a word, an identifier or a sentence")
    kind = HitKind(args.kind) if args.kind else None
    index = opened(args, settings, render)
    if args.literal or args.regex:
        answer = search_expression(index, args.text, kind, args.limit, literal=args.literal)
    else:
        answer = search_text(index, args.text, kind, args.limit)
    if args.json:
        render.json({"query": args.text, "root": str(index.root), **asdict(answer)})
    else:
        _show(args, answer, render)
    return 0 if answer.hits else 1


def _show(args: argparse.Namespace, answer: SearchAnswer, render: Render) -> None:
    if not answer.hits:
        render.note(f"nothing found for {args.text!r}")
        return
    if answer.broadened:
        render.note(f"nothing holds these words; searched for what is like them: {answer.broadened}")
    for hit in answer.hits:
        if args.format == _PLACES:
            render.line(f"{hit.path}:{hit.line}:{hit.column}: {hit.text}")
        elif args.literal or args.regex:
            render.line(f"{hit.path}:{hit.line}: {hit.text}" + (f"   [{hit.name}]" if hit.name else ""))
        else:
            _show_hit(hit, render)
    if answer.found > len(answer.hits):
        render.note(f"{answer.found - len(answer.hits)} more; --limit shows them")


def _show_hit(hit: ShownHit, render: Render) -> None:
    lines = f"{hit.first_line}-{hit.last_line}" if hit.last_line > hit.first_line else f"{hit.first_line}"
    render.line(f"{hit.path}:{lines}  {hit.kind}{' ' + hit.name if hit.name else ''}")
    if hit.signature:
        render.line(f"    {hit.signature}")
    if hit.summary:
        render.line(f"    {hit.summary}")
    if hit.text and hit.line > hit.first_line and hit.text not in (hit.signature, hit.summary):
        render.line(f"    {hit.line}: {hit.text}")
    render.line(f"    ({hit.reason})" if hit.reason else "")
