"""`localagent tasks`: what the daemon works on for you, and what others do where you may know."""

import argparse
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.cli.actions import add_action
from localagent.cli.render import Render
from localagent.daemon.client.approval_client import patches_of
from localagent.errors import UsageFault
from localagent.protocol.http_client import DEFAULT_SOCKET, Client
from localagent.protocol.task_order import TASK_ID, aim_of
from localagent.report.confidence_text import confidence_line, likeliest_first
from localagent.text.visible_text import one_line, shortened

_SHOWN = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`tasks list|show|cancel|approve|patches`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("list", "your newest tasks at the daemon, the likeliest repair first"),
        ("show", "status and request of a task"),
        ("cancel", "cancel a task of yours"),
        ("approve", "let a held task of another user run"),
        ("patches", "patches of a task that need approval (`localagent approve ID --daemon`)"),
    ):
        action = add_action(actions, name, text)
        if name == "list":
            action.add_argument("--all", action="store_true", help="tasks of all users, if you have the role")
        else:
            action.add_argument(
                "id",
                metavar="ID",
                help="task id, as printed by `tasks list`; the first characters of one of yours are enough",
            )
        action.add_argument("--daemon", type=Path, default=DEFAULT_SOCKET, metavar="SOCKET", help="the daemon's socket")
        action.add_argument("--json", action="store_true", help="the daemon's answer as one line of JSON")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0; 1 when the daemon refuses; 4 when there is none."""
    del settings
    client = Client(args.daemon)
    try:
        if args.action == "list":
            found = client.get(f"/v1/tasks?limit={_SHOWN}" + ("&all=1" if args.all else "")).json()
            tasks = sorted(found["tasks"], key=lambda task: likeliest_first(task.get("confidence")))
        elif args.action == "patches":
            return _patches(client, _full_id(client, args.id), render, as_json=args.json)
        else:
            found = _one(client, args.action, args.id)
            tasks = [found]
    finally:
        client.close()
    if args.json:
        render.json(found)
        return 0
    for task in tasks:
        render.line(_line(task))
    if args.action == "list" and found["next"]:
        render.note(f"older tasks are not listed: only the newest {_SHOWN} are shown")
    return 0


def _full_id(client: Client, given: str) -> str:
    """The id of the user's own task that begins so; whoever means another's gives it whole. UsageFault otherwise."""
    if TASK_ID.fullmatch(given):
        return given
    listed = client.get(f"/v1/tasks?limit={_SHOWN}").json()["tasks"]
    known = [str(task["id"]) for task in listed if TASK_ID.fullmatch(str(task["id"]))]
    found = [task for task in known if given and task.startswith(given)]
    if len(found) != 1:
        what = f"begins the ids of {len(found)} tasks" if found else "is no task id, and begins none of your tasks'"
        raise UsageFault(f"{given!r} {what}", remedy="`localagent tasks list` prints full ids")
    return found[0]


def _one(client: Client, action: str, given: str) -> Any:
    task = _full_id(client, given)
    if action == "show":
        return client.get(f"/v1/tasks/{task}").json()
    return client.post(f"/v1/tasks/{task}/{action}", {}).json()


def _patches(client: Client, task: str, render: Render, *, as_json: bool) -> int:
    """Each patch with what is asked about it, the words that stand for it, and its diff."""
    found = patches_of(client, task)
    if as_json:
        render.json({"task": task, "patches": found})
        return 0
    for patch in found:
        render.line(f"patch {patch['number']}: {patch['verdict']}  {patch['patch']}")
        for line in patch["asked"]:
            render.line(f"  {line}")
        for word in patch["approvals"]:
            render.line(f"  approved by {word['who']} at {word['at']}: {word['reason']}")
        render.line(f"  may be approved by: {', '.join(patch['people']) or 'nobody'}")
        for line in patch["diff"].splitlines():
            render.line(line)
    if not found:
        render.note("no patch there needs approval")
    return 0


def _line(task: dict[str, Any]) -> str:
    what = one_line(aim_of(task["order"]), 60)
    exit_code = "" if task["exit"] is None else f" ({task['exit']})"
    whose = f"user {task['uid']}  " if "uid" in task else ""
    likely = f"{confidence_line(told)}  " if (told := task.get("confidence")) else ""
    why = shortened(task["reason"], 100)
    return f"{task['id']}  {task['state']}{exit_code}  {whose}{what}  {likely}{why}".rstrip()
