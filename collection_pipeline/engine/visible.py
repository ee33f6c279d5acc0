"""Texts that strangers wrote, made visible: no character of them does more than it shows, wherever they are printed."""

from __future__ import annotations

import re
import unicodedata

_SPACES = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Control, direction, invisible and unassigned characters that change or forge what is read. The joiners U+200C and
U+200D are not among them: Persian, Indic scripts and emoji are written with them."""


LONGEST = 80
"""Characters of what somebody typed that a refusal repeats."""


def shortened(text: str) -> str:
    """The beginning of a text that may be long, for a refusal that stays readable; `!r` makes it visible as well."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def visible(text: str) -> str:
    """The text on one line, with every hidden character shown by its code point, as in [U+202E]."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", _SPACES.sub(" ", text)).strip()


def is_garbled(text: str) -> bool:
    """Whether it holds a control character, or a byte that was no UTF-8, and so can be neither stored nor shown."""
    return any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
