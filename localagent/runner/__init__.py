"""The one program that runs inside the jail: the project's own Python (3.8 or later), the standard library only.

Inside it is the package `_la_worker` below a neutral directory; here it is `localagent.runner`, so the host shares
its framing (`json_frames`). Not promised: a verdict that code under test, running in the same process as pytest, can
never influence. What is promised: whatever it does by accident (exit, crash, garbage on descriptors) never becomes a
pass.
"""
