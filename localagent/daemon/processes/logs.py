"""What the daemon's processes say of their own faults: a line on standard error, which systemd keeps.

Other libraries' remarks are not shown: a malformed request of anybody would be a line.
"""

import logging

from localagent.text.visible_text import visible


class _VisibleFormatter(logging.Formatter):
    """A line is one line, and drives no terminal: what it quotes may come from anybody."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return super().formatMessage(record).replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def log_to_stderr() -> None:
    """Once a process."""
    logging.getLogger().addHandler(logging.NullHandler())
    ours = logging.getLogger("localagent")
    handler = logging.StreamHandler()
    handler.setFormatter(_VisibleFormatter("localagent: %(name)s: %(message)s"))
    ours.addHandler(handler)
    ours.propagate = False
