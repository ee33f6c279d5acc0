"""What the bytes of one SerpBase answer mean: a success whose body is safe to store, or a typed error.

Facts of the wire format: the vendor's documentation and open-source clients. Where they are silent, these rules hold:

* `status` may be any JSON number with an integral value; text, booleans and null are malformed.
* A nonzero business status wins over the HTTP status; `status` 0 with an HTTP error does not make a success.
* A result key that is missing or null means that nothing was found. A wrong type there is malformed.
* A success without a usable `request_id` gets one of our own, `local-…`, so that its rows still lead to their call.
* A success that does not say what it cost is counted at its list price: a budget must err on the safe side.
* The content type is not looked at, the body is; `bodies.py` says what is cleaned in it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collection_pipeline.sources.bodies import BodyError, read_object
from collection_pipeline.sources.contract import (
    ApiRequest,
    Endpoint,
    MalformedResponseError,
    NotFoundError,
    OutOfCreditsError,
    SourceError,
    TerminalSourceError,
    TransientSourceError,
    UnauthorizedError,
)

PATHS: Mapping[Endpoint, str] = {
    "search": "/google/search",
    "news": "/google/news",
    "maps_search": "/google/maps/search",
    "maps_detail": "/google/maps/detail",
}
RESULT_KEYS: Mapping[Endpoint, tuple[str, type]] = {
    "search": ("organic", list),
    "news": ("news", list),
    "maps_search": ("places", list),
    "maps_detail": ("place", dict),
}
RETRYABLE_STATUSES = {
    1029: "rate limited",
    1500: "internal error",
    1502: "upstream failure",
    1503: "upstream unavailable",
    1504: "upstream timed out",
}
_TERMINAL_STATUSES: Mapping[int, tuple[type[TerminalSourceError], str]] = {
    1000: (TerminalSourceError, "invalid request"),
    1001: (UnauthorizedError, "unauthorized"),
    1004: (NotFoundError, "not found"),
    1020: (OutOfCreditsError, "insufficient credits"),
}
_TERMINAL_HTTP: Mapping[int, type[TerminalSourceError]] = {
    401: UnauthorizedError,
    402: OutOfCreditsError,
    403: UnauthorizedError,
}

_MAX_CREDITS = 1_000_000
_MAX_REQUEST_ID = 100
_MAX_ERROR_TEXT = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one answer means. Exactly one of `body` and `error` is set."""

    status: int | None = None
    request_id: str | None = None
    credits_charged: int = 0
    body: bytes | None = None
    error: SourceError | None = None


def judge(
    request: ApiRequest, http_status: int, raw: bytes, *, secret: str, retry_after_s: float | None = None
) -> Verdict:
    """Decide what an answer to `request` means. `secret` is removed wherever the server echoes it. Raises nothing."""
    try:
        payload, body = read_object(raw, secret)
        status = _business_status(payload)
    except BodyError as reason:
        if http_status >= 300:
            return Verdict(error=_http_error(http_status, retry_after_s))
        return Verdict(error=MalformedResponseError(f"malformed answer: {reason}"))
    stated = _stated_credits(payload)
    request_id = _request_id(payload)
    if status != 0:
        error = _business_error(status, payload, retry_after_s)
        return Verdict(status, request_id, stated or 0, error=error)
    if http_status >= 300:
        return Verdict(status, request_id, stated or 0, error=_http_error(http_status, retry_after_s))
    key, kind = RESULT_KEYS[request.endpoint]
    result = payload.get(key)
    if result is not None and not isinstance(result, kind):
        wanted = "an array" if kind is list else "an object"
        error = MalformedResponseError(f"malformed answer: {key!r} is not {wanted}", possibly_billed=stated is None)
        return Verdict(status, request_id, stated or 0, error=error)
    return Verdict(
        status,
        request_id or f"local-{uuid.uuid4()}",
        request.credits if stated is None else stated,
        body=body,
    )


def _business_status(payload: Mapping[str, Any]) -> int:
    status = payload.get("status")
    if isinstance(status, bool) or not isinstance(status, int | float) or status != int(status) or abs(status) >= 2**31:
        raise BodyError("'status' is missing or not an integer")
    return int(status)


def _stated_credits(payload: Mapping[str, Any]) -> int | None:
    stated = payload.get("credits_charged")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    return int(stated) if stated == int(stated) and 0 <= stated <= _MAX_CREDITS else None


def _request_id(payload: Mapping[str, Any]) -> str | None:
    request_id = payload.get("request_id")
    if isinstance(request_id, str) and request_id.isprintable() and 0 < len(request_id.strip()) <= _MAX_REQUEST_ID:
        return request_id.strip()
    return None


def _business_error(status: int, payload: Mapping[str, Any], retry_after_s: float | None) -> SourceError:
    said = payload.get("error")
    text = ""
    if isinstance(said, str):
        text = "".join(c if c.isprintable() else " " for c in said[:_MAX_ERROR_TEXT]).strip()
    if status in RETRYABLE_STATUSES:
        return TransientSourceError(_message(status, RETRYABLE_STATUSES[status], text), retry_after_s=retry_after_s)
    kind, meaning = _TERMINAL_STATUSES.get(status, (TerminalSourceError, "an error this client does not know"))
    return kind(_message(status, meaning, text))


def _message(status: int, meaning: str, said: str) -> str:
    return f"status {status}, {meaning}" + (f": {said}" if said and said.lower() != meaning else "")


def _http_error(http_status: int, retry_after_s: float | None) -> SourceError:
    """An HTTP error with no business status to explain it: it comes from something between us and the service."""
    if http_status == 429 or http_status >= 500:
        # After any other 5xx the service may have done its work, only the answer was lost on the way.
        ambiguous = http_status not in (429, 503)
        return TransientSourceError(f"HTTP {http_status}", possibly_billed=ambiguous, retry_after_s=retry_after_s)
    if http_status < 400:
        return TerminalSourceError(f"HTTP {http_status}: the server redirects; redirects are not followed")
    return _TERMINAL_HTTP.get(http_status, TerminalSourceError)(f"HTTP {http_status}")
