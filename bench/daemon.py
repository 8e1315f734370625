"""What the daemon answers while it works: many connected clients, an open loop of status requests, during repairs.

    python bench/daemon.py [--clients 500] [--rate 200] [--seconds 20] [--kills 0]

Open loop: requests are due at fixed times whatever the answers do, and a latency counts from when it was due, so that a
stall is not hidden by the client's own waiting. `--kills N` kills the daemon, its front or a worker N times instead,
over a queue of 50 tasks that is filled again when half of it is done, and counts what was lost, doubled or damaged.
Numbers on a loaded machine say little.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "hostile"), str(ROOT / "tests"), str(ROOT)]

from support.fix_builder import ADDER  # noqa: E402
from support.service_builder import Served, ordered, served  # noqa: E402
from test_daemon_kills import storm  # noqa: E402

MORE = '[[grant]]\nusers = ["{}"]\nroles = ["submit", "read-all"]\n'


async def open_loop(daemon: Served, task: str, clients: int, rate: float, seconds: float) -> tuple[list[float], int]:
    """Latencies in seconds, and how many requests failed."""
    lines = [await asyncio.open_unix_connection(str(daemon.socket)) for _ in range(clients)]
    locks = [asyncio.Lock() for _ in lines]
    request = f"GET /v1/tasks/{task} HTTP/1.1\r\nhost: x\r\n\r\n".encode()
    latencies: list[float] = []
    errors = 0

    async def ask(number: int, due: float) -> None:
        nonlocal errors
        reader, writer = lines[number % clients]
        try:
            async with locks[number % clients], asyncio.timeout(30):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.startswith(b"content-length"))
                await reader.readexactly(length)
                if not head.startswith(b"HTTP/1.1 200"):
                    errors += 1
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            errors += 1
        latencies.append(time.monotonic() - due)

    began = time.monotonic()
    asked = []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.create_task(ask(number, due)))
    await asyncio.gather(*asked)
    for _, writer in lines:
        writer.close()
    return latencies, errors


def measure(clients: int, rate: float, seconds: float) -> dict[str, object]:
    """Status requests while repairs run all the time."""
    limits = {"connections": clients + 50, "all_connections": clients + 100, "requests_a_second": 100_000}
    with served(more=MORE.format(os.geteuid()), burst=100_000, **limits) as daemon:
        client = daemon.client()
        tasks = [ordered(client, ADDER, max_seconds=30)["id"] for _ in range(3)]
        while client.get(f"/v1/tasks/{tasks[0]}").json()["state"] == "queued":
            time.sleep(0.05)
        load = os.getloadavg()[0]
        latencies, errors = asyncio.run(open_loop(daemon, tasks[0], clients, rate, seconds))
        states = [client.get(f"/v1/tasks/{task}").json()["state"] for task in tasks]
    latencies.sort()
    at = {f"p{share}_ms": round(1000 * latencies[int(len(latencies) * share / 100)], 1) for share in (50, 90, 99)}
    return {
        "clients": clients,
        "requests": len(latencies),
        "errors": errors,
        **at,
        "max_ms": round(1000 * latencies[-1], 1),
        "tasks": states,
        "load_before": round(load, 1),
    }


def kill(kills: int, tasks: int) -> dict[str, object]:
    """As tests/hostile/test_daemon_kills.py does, only more; that fails where anything is lost, doubled or damaged."""
    seed = random.randrange(1 << 30)
    began = time.monotonic()

    def told(done: int, ordered: int) -> None:
        if sys.stderr.isatty() or done % 100 == 0:
            print(f"{done} kills, {ordered} tasks, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    ordered = storm(tasks=tasks, kills=kills, seed=seed, told=told)
    return {
        "open": tasks,
        "tasks": ordered,
        "kills": kills,
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "lost": 0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=50)
    args = parser.parse_args()
    if args.kills:
        print(json.dumps(kill(args.kills, args.tasks)))
    else:
        print(json.dumps(measure(args.clients, args.rate, args.seconds)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
