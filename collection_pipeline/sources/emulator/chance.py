"""Numbers that look random and are the same every time: all that is synthetic in the emulator comes from here."""

from __future__ import annotations

from hashlib import blake2b


def dice(*what: object) -> int:
    """A number from 0 to 2**64 - 1 that depends on `what` alone."""
    text = "\x1f".join(map(str, what))
    return int.from_bytes(blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).digest(), "big")


def chance(*what: object) -> float:
    """A number from 0 up to, but not including, 1 that depends on `what` alone."""
    return (dice(*what) >> 11) / 2**53
