"""Wrong declarations in the project's own files, and where they were written."""

from __future__ import annotations

import sys
from pathlib import Path


class DeclarationError(ValueError):
    """Something in the project's own files is declared wrongly; the message names file and line where it can."""


def call_site(above: int) -> str:
    """`file:line` of the code that many frames above whoever asks: 1 above a dataclass's generated `__init__`, which
    calls default factories, and so 2 above its `__post_init__`."""
    frame = sys._getframe(above + 1)  # noqa: SLF001 - the documented way to a caller's frame without reading source files
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
