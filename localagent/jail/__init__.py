"""The jail: pure builders from a JailSpec to a command line, one runner, probes, workspaces.

`localagent.jail.api` is the front door. What is not promised stands in docs/security.md: a jail is as strong as
the kernel below it, and timing or cache side channels are out of scope.
"""

from localagent.jail.api import Workspace, interpreter_binds, load_profile, open_jail

__all__ = ["Workspace", "interpreter_binds", "load_profile", "open_jail"]
