"""All attacks that run as programs in a jail, in the order they are shown. Names are unique."""

from localagent.jail.attacks import information, kernel, network, processes, reads, resources, writes
from localagent.jail.attacks.attack import Attack

MODULES = (reads, writes, network, processes, resources, kernel, information)
ATTACKS: tuple[Attack, ...] = tuple(entry for module in MODULES for entry in module.attack.attacks)
