"""How the first process starts the daemon's other programs."""

import json
import subprocess
import sys
from pathlib import Path

from localagent.app.settings import PACKAGE

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from localagent.daemon.{} import main; sys.exit(main(sys.argv[2]))"
)


def start_process(
    module: str, order: dict[str, object], descriptors: tuple[int, ...], cache: Path
) -> "subprocess.Popen[bytes]":
    """One of our own programs, with nothing of our environment, in a session of its own.

    `cache` is where libraries may cache: they would write into a home otherwise.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-B", "-c", _PROGRAM.format(module), str(PACKAGE.parent), json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=descriptors,
        env={"LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_CACHE_HOME": str(cache)},
        cwd="/",
        start_new_session=True,
    )
