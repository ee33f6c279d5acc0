"""Numbers of things in English."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number with its noun, a regular one in the singular: "1 row", "0 rows"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
