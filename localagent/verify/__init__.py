"""Everything that runs the repository's code: baseline, quick check, full check. Always in a jail, never here.

Not promised: that passing tests make a patch right. Nothing is ever read back from a workspace after tests ran.
"""
