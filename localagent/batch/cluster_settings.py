"""What Dask runs with in a cluster of ours: TLS alone, lost workers noticed early, and nothing measured all the time.

Even without a dashboard Dask opens a port for plain HTTP, on every address: it is given nothing to say there, and
docs/batch.md has it on the loopback. An idle scheduler or worker of Dask wakes up some hundred times a second to watch
itself; a repository takes seconds to minutes, and its process watches itself. Not promised: that Dask keeps these
names; unknown ones do nothing there.
"""

from typing import Any

FILE_NAME = "dask.yaml"
LOST_SECONDS = 60  # without a sign of life a worker is given up, and what it had is done by another

TEXT = f"""\
# For the scheduler and every worker of `localagent batch`: DASK_CONFIG=DIR/{FILE_NAME} dask scheduler|worker ...
distributed:
  comm:
    require-encryption: true
    tls:
      min-version: 1.3
  scheduler:
    worker-ttl: {LOST_SECONDS}s
    http:
      routes: []
    active-memory-manager:
      start: false
  worker:
    http:
      routes: []
    preload:
      - localagent.cli.batch_cluster
    profile:
      enabled: false
    memory:
      monitor-interval: 5s
  admin:
    tick:
      interval: 1s
      limit: 30s
      cycle: 10s
    system-monitor:
      interval: 10s
      disk: false
      gil:
        enabled: false
"""

CLIENT: dict[str, Any] = {
    "distributed.comm.tls.min-version": 1.3,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.large-graph-warning-threshold": "2GB",  # trees go with their tasks
}
