"""What the daemon's processes say of their own faults: a line on standard error, which systemd keeps.

Other libraries' remarks are not shown: a malformed request of anybody would be a line.
"""

import logging


def log_to_stderr() -> None:
    """Once a process."""
    logging.getLogger().addHandler(logging.NullHandler())
    ours = logging.getLogger("localagent")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("localagent: %(name)s: %(message)s"))
    ours.addHandler(handler)
    ours.propagate = False
