"""Start: `python <place>/_la_worker/__main__.py CHANNEL`. Nothing of the repository is importable while this loads."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[0] = place
    from _la_worker.supervisor import main  # type: ignore[import-not-found,unused-ignore]

    del sys.path[0]
    main(sys.argv[1:])
