"""The console of live displays: what it renders has its control characters made visible, as `render` does for lines."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from localagent.text.visible_text import visible


class SafeConsole(Console):
    """rich's console; only its own control codes reach the terminal. Texts wider by their escapes are cropped."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's, segment by segment."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
