"""The attack suite: what hostile code tries in a jail, each attack with the wall that holds it and the reason seen.

One module a category: each attack's program stands beside its declaration. The category modules, `attack` and `inside`
are read in the jail and need the standard library alone; `stage`, `suite` and `row` belong to the host.
Not promised: that a jail which holds all of these holds everything; each attack is one known way, tried once.
"""
