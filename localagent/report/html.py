"""HTML pages from the templates beside this module: one environment, every value escaped, no script anywhere.

What a template writes is made visible on one line and cut (`text/visible_text`), then HTML's own characters are
escaped, whether or not the template says so. A template that names a value which it was not given is a fault.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.text.visible_text import one_line, visible

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, /, **values: object) -> bytes:
    """A whole page."""
    return _environment().get_template(template).render(values).encode("utf-8")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - slow to import, for HTML alone
    from markupsafe import Markup, escape  # noqa: PLC0415

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else one_line(str(value))

    def cut(value: object, most: int) -> Markup:
        return escape(one_line(str(value), most))

    def source(value: str) -> Markup:
        return escape(visible(value))

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"cut": cut, "source": source}
    return made
