"""Bytes from the network → a JSON object that every later reader and every database can take, or the reason why not.

Nothing is invented and nothing useful is lost: U+0000 and lone surrogates become U+FFFD, the API key is removed where
the server echoes it, and numbers beyond 64 bits or a double become null. Of doubled keys the last counts.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Deeper nesting is refused: a body that parses here must also parse where the stack is fuller."""
MAX_COMMAS = 200_000
"""A body with more commas is refused before it is parsed, which bounds memory; a page of places has some hundreds."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBERS = (b"0" * 19, b"0e000", b"0e+000")
"""Longer than 64 bits or beyond a double, once all digits look alike: a search for these is faster than a pattern."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BodyError(Exception):
    """Why a body is not a JSON object. The text quotes nothing of the body."""


def _refuse_constant(name: str) -> NoReturn:
    raise BodyError(f"the body holds {name}, which is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""Made once: `json.loads` makes one for each body."""


def read_object(raw: bytes, secret: str) -> tuple[dict[str, Any], bytes]:
    """The object and its bytes: the original ones, or re-encoded if something had to be cleaned. Raises `BodyError`."""
    raw = raw.removeprefix(_BYTE_ORDER_MARK).strip()
    if not raw.startswith(b"{"):
        raise BodyError("the body is not a JSON object" if raw else "the body is empty")
    if raw.count(b",") > MAX_COMMAS:
        raise BodyError("the body has too many values")
    try:
        payload = _DECODER.decode(raw.decode())
    except UnicodeDecodeError:
        raise BodyError("the body is not UTF-8") from None
    except RecursionError:
        raise BodyError("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BodyError(f"the body is not JSON: {error.msg} (character {error.pos})") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise BodyError("the body holds a number that is too long") from None
    if not _needs_a_look(raw, secret):
        return payload, raw
    cleaned = _clean(payload, 1, secret)
    return (payload, raw) if cleaned is payload else (cleaned, _encode(cleaned))


def _needs_a_look(raw: bytes, secret: str) -> bool:
    """Whether anything in the body may have to be cleaned or refused: what the strict decoder has let pass can only
    hide behind an escape, in a long number, in nesting, or be the key. Four quick scans spare most bodies the slow
    walk.
    """
    if b"\\" in raw or (secret and secret.encode() in raw) or _may_be_deep(raw):
        return True
    alike = raw.translate(_DIGITS_ALIKE)
    return any(long in alike for long in _LONG_NUMBERS)


def _may_be_deep(raw: bytes) -> bool:
    """Whether nesting may reach MAX_DEPTH: takes away the innermost pairs, level by level. Brackets in texts count."""
    brackets = raw.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return bool(brackets)


def clean_text(text: str, secret: str) -> str:
    """`text` itself if it is fit to be stored, else a cleaned copy without `secret` (empty: there is none)."""
    storable = _UNSTORABLE.sub("\ufffd", text)
    return storable.replace(secret, "[API key removed]") if secret else storable


def _clean(value: Any, depth: int, secret: str) -> Any:
    """`value` itself if it is fit to be stored, else a cleaned copy."""
    if isinstance(value, str):
        text = clean_text(value, secret)
        return value if text == value else text
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise BodyError("the body is nested too deeply")
        return _clean_object(value, depth, secret) if isinstance(value, dict) else _clean_array(value, depth, secret)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    return value


def _clean_object(value: dict[str, Any], depth: int, secret: str) -> dict[str, Any]:
    cleaned = {_clean(key, depth, secret): _clean(item, depth + 1, secret) for key, item in value.items()}
    same = all(cleaned.get(key, cleaned) is item for key, item in value.items())
    return value if same else cleaned


def _clean_array(value: list[Any], depth: int, secret: str) -> list[Any]:
    cleaned = [_clean(item, depth + 1, secret) for item in value]
    return value if all(new is old for new, old in zip(cleaned, value, strict=True)) else cleaned


def _encode(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
