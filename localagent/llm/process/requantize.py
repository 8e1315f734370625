"""The confined child that writes a model's weights in another format, from one file that it is shown into another.

Started by `tune` through a jail. It may write as much as the jail lets it and then ends; whatever it wrote is hostile
to the parent, like any model: only a confined child ever loads it.
"""

import os
import socket
import sys

from localagent.errors import LocalagentError
from localagent.llm.process.child import NICENESS, checked
from localagent.llm.process.llama_engine import requantize
from localagent.llm.process.protocol import TARGET, WEIGHTS, receive_first, send


def main(arguments: list[str]) -> int:
    """Serve the one request of a parent."""
    os.nice(NICENESS)
    channel = socket.socket(fileno=int(arguments[0]))
    request = receive_first(channel, "requantize")
    try:
        source, target = os.open(WEIGHTS, os.O_RDONLY | os.O_CLOEXEC), os.open(TARGET, os.O_RDWR | os.O_CLOEXEC)
        checked(request, source)
        requantize(source, target, str(request["type"]))
    except (LocalagentError, OSError) as fault:
        send(channel, {"kind": "refused", "why": str(fault)})
        return 1
    send(channel, {"kind": "written", "type": request["type"]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
