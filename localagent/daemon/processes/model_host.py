"""The model process: one for all workers. Holds the confined child that computes, and a line to each worker.

What workers ask is given to the child unread but for its frame; the child has a jail and a memory limit of its own. It
ends with its parent. Not promised: a model; workers go on without one.
"""

import json
import logging
import os
import select
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.daemon.processes.logs import log_to_stderr
from localagent.daemon.processes.shared_process import MOST_ABOUT_BYTES
from localagent.errors import LocalagentError
from localagent.llm.model.gpu import offload_of
from localagent.llm.model.quantized_store import serving, spare_of
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.process.model_client import Served
from localagent.llm.process.shared_model_client import ClientConnection, Shared
from localagent.ports import Jail

TIDY_SECONDS = 30.0
NICE = 5  # whoever asks how it goes is answered first
_log = logging.getLogger("localagent.model")


def known_models(settings: Settings) -> dict[str, ModelFile]:
    """What may be asked for, by what it loads: what serves of each registered file, and what does where that fails."""
    found = [model for model in Registry(settings.models_dir, settings.data_dir).list() if model.path is not None]
    served = [(serving(one, settings.data_dir), one) for one in found]
    asked = [*found, *(model for model, _ in served), *filter(None, (spare_of(*pair) for pair in served))]
    return {model.loaded: model for model in asked}


def _jail(order: dict[str, Any], settings: Settings) -> Jail:
    policy = open_policy(settings, Path(order["policy"])).policy
    return open_policy_jail(settings, policy)


def main(argument: str) -> int:
    """The process. `control` of the order is a socket: descriptors of new lines come over it, and our end."""
    log_to_stderr()
    os.nice(NICE)
    order = json.loads(argument)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    paths: dict[str, Any] = {name: Path(path) for name, path in order["settings"].items()}
    settings = Settings(**paths, system_owner=int(order["system_owner"]), gpu_layers=str(order.get("gpu_layers", "")))
    control = socket.socket(fileno=int(order["control"]))
    try:
        jail, offload = _jail(order, settings), offload_of(settings.gpu_layers)
        if offload.said:
            _log.warning("the model is %s", offload.said)
        models = known_models(settings)
    except LocalagentError as fault:
        _log.error("no model is served: %s", fault)
        return fault.exit_code

    def made(sha256: str) -> Served | None:
        model = models.get(sha256)
        return None if model is None else Served(model, jail, offload=offload)

    shared = Shared(made)
    try:
        return _serve(control, shared)
    finally:
        shared.close()


def _serve(control: socket.socket, shared: Shared) -> int:
    while True:
        if not select.select([control], [], [], TIDY_SECONDS)[0]:
            shared.tidy()
            continue
        data, lines, _, _ = socket.recv_fds(control, MOST_ABOUT_BYTES, 1)
        for number in lines:
            os.set_inheritable(number, False)
            line = ClientConnection(socket.socket(fileno=number), shared)
            threading.Thread(target=line.run, name="line", daemon=True).start()
        if not data:
            return 0  # our parent is gone, or wants us gone
