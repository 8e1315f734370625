"""The function that a machine of a cluster runs, by its name. No verb: `localagent batch run` sends it."""

from localagent.app import Settings
from localagent.batch.cluster_task import answer_task
from localagent.cli.batch_worker import ways


def work_one(request: bytes, tree: bytes) -> bytes:
    """One repository: JSON and bytes in, an answer in JSON out; never raises for what is asked."""
    return answer_task(request, tree, ways(), Settings.from_environ())
