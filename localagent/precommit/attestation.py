"""What the hook wrote, attested where a key signs: a task around the writing, kept where other tasks are.

Without a key there is none: a hook runs at every commit, and the audit journal's two entries are its record. Not shown
by such an attestation: that any test passes, for none is run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.app import Settings
from localagent.domain.edit import Patch

if TYPE_CHECKING:
    from localagent.app.policies import OpenPolicy


class Attesting:
    """Handed to what writes; afterwards `task` is the id of the task that was attested, and `key` who signed, or ""."""

    def __init__(self, settings: Settings, policy: "Callable[[], OpenPolicy]") -> None:
        self._settings = settings
        self._policy = policy
        self.task = ""
        self.key = ""

    @contextmanager
    def around(self, root: Path, patch: Patch, rules: Sequence[str]) -> Iterator[Mapping[str, str]]:
        """UsageFault where the key cannot be opened, RecordDamaged over an altered journal: then nothing is written."""
        from localagent.app.evidence.task_evidence import key_ring  # noqa: PLC0415 - most runs write nothing

        if key_ring(self._settings).active() is None:
            yield {}
            return
        from localagent.app.evidence.recorded_patch import Remedy, Remedying, remedied  # noqa: PLC0415 - and most have no key
        from localagent.domain.task import Task  # noqa: PLC0415
        from localagent.record.evidence_facts import Builder  # noqa: PLC0415

        asked = Remedying(
            task=Task(id="", repo=str(root.resolve())),
            policy=self._policy(),
            builder=Builder.HOOK,
            rules=tuple(rules),
            apply=True,
        )
        with remedied(asked, self._settings) as task:
            yield {"task": task.record.id}
            task.end(Remedy(patch=patch, reason=f"written by the hook: {', '.join(rules)}", remain=True))
            self.task, self.key = task.record.id, task.signed_by
