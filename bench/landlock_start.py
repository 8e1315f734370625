"""How much longer a jail takes to start with the Landlock wall: `python bench/landlock_start.py [COUNT]`."""

import statistics
import sys
import time
from dataclasses import replace

from localagent.domain.jailspec import JailSpec
from localagent.jail.launcher.runner import NamespaceJail
from localagent.jail.probe import selection


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for result in selection.every():
        backend = result.backend
        if backend is None or backend.landlock is None:
            print(f"{result.name}: no jail, or no Landlock")
            continue
        jails = {"with": NamespaceJail(backend), "without": NamespaceJail(replace(backend, landlock=None))}
        took: dict[str, list[float]] = {name: [] for name in jails}
        for _ in range(count):  # alternating, so that other work slows both alike
            for name, jail in jails.items():
                began = time.perf_counter()
                jail.run(JailSpec(argv=("/bin/true",), cwd="/"))
                took[name].append((time.perf_counter() - began) * 1000)
        for word, chosen in (("median", statistics.median), ("least", min)):
            told = {name: chosen(times) for name, times in took.items()}
            more = told["with"] - told["without"]
            said = f"with {told['with']:.1f} ms, without {told['without']:.1f} ms, {more:.1f} ms more"
            print(f"{result.name}: {word} {said}")


if __name__ == "__main__":
    main()
