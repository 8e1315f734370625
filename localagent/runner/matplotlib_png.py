"""A backend of matplotlib that has no screen: `plt.show()` writes every open figure as a PNG into the working folder.

Chosen by MPLBACKEND inside the jail, imported by matplotlib alone. Names are `figure-N.png`, never one that exists.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from matplotlib._pylab_helpers import Gcf  # type: ignore[import-not-found,unused-ignore]
from matplotlib.backend_bases import FigureManagerBase  # type: ignore[import-not-found,unused-ignore]
from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found,unused-ignore]
from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]

FIGURE_LIMIT = 10_000
FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase


def new_figure_manager(num: Any, *args: Any, FigureClass: Any = Figure, **kwargs: Any) -> Any:  # noqa: N803 - theirs
    """What pyplot asks a backend for."""
    return new_figure_manager_given_figure(num, FigureClass(*args, **kwargs))


def new_figure_manager_given_figure(num: Any, figure: Any) -> Any:
    """What pyplot asks a backend for."""
    return FigureManagerBase(FigureCanvasAgg(figure), num)


def show(*args: Any, **kwargs: Any) -> None:
    """Write the open figures, say where, and close them, as a window that was closed."""
    for manager in Gcf.get_all_fig_managers():
        path = _free_name()
        manager.canvas.figure.savefig(path, format="png")
        sys.stdout.write("[the figure is in %s]\n" % path)
    Gcf.destroy_all()


def _free_name() -> str:
    for number in range(1, FIGURE_LIMIT):
        path = "figure-%d.png" % number
        if not os.path.lexists(path):
            return path
    raise OSError("there are %d figures already" % FIGURE_LIMIT)
