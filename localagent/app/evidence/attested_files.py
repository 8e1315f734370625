"""Whether the files of a tree are those that an attestation is about: read one by one, followed through no link.

Files that the attestation does not name are not looked at: it says nothing of them, and neither does this.
"""

from collections.abc import Mapping
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.fs import openat
from localagent.record.attest.bundle import Attested
from localagent.record.attest.dsse import NotVerified
from localagent.record.attest.statement import diff_name, subject_paths
from localagent.text.visible_text import one_line

_MOST_BYTES = 64 << 20


def files_of(found: Attested) -> Mapping[str, str]:
    """The attested digests of files by the name of their subject: all but the diff's."""
    return {name: digest for name, digest in found.subjects.items() if name != diff_name(found.task)}


def attested_file_count(found: Attested, folder: Path) -> int:
    """How many files a tree holds, and that is all of them, as attested. NotVerified names those that are not."""
    files = files_of(found)
    with openat.root_directory(folder) as root:
        other = [one_line(name, 200) for name, digest in files.items() if _digests(name, root) != {digest}]
    if other:
        more = f" and {len(other) - 5} more" if len(other) > 5 else ""
        raise NotVerified(
            f"{', '.join(other[:5])}{more} of {folder} is not as attested, or is no regular file there",
            remedy="name the tree as the patch left it; files of a redacted attestation have numbers and are nowhere",
        )
    return len(files)


def _digests(name: str, root: int) -> set[str]:
    """What stands at each path that a subject's name may mean: "" for what is there and cannot be read as a file.

    All of it must be as attested: beside an altered file its other reading may have been put.
    """
    digests = set()
    for text in subject_paths(name):
        try:
            path = RepoPath(text)
            with openat.parent_directory(root, path.parts) as parent:
                digests.add(digest_of(openat.read_regular(path.name, parent, _MOST_BYTES)[0]))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UsageFault, ValueError):  # a link, a folder, or no path at all
            digests.add("")
    return digests
