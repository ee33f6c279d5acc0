"""What a source of paid answers is to the rest of the project: requests in, exchanges out, errors with a kind.

A source is replaced by writing another class with `stream`; nothing else in the project knows HTTP.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol

Endpoint = Literal["search", "news", "maps_search", "maps_detail"]

CREDITS: Mapping[Endpoint, int] = {"search": 1, "news": 1, "maps_search": 2, "maps_detail": 2}
"""Price of one successful request, in credits (the vendor's documentation)."""

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


EMULATOR = "emulator (synthetic)"
"""What data of the emulator is labelled with wherever people see it: it never passes for a real service's."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One call to make: the endpoint and its JSON body (no nulls)."""

    endpoint: Endpoint
    params: Mapping[str, str | int | float]
    fingerprint: str = field(init=False, repr=False, compare=False)
    """The same for two requests that would buy the same answer: sha256 (hex), white space folded."""

    def __post_init__(self) -> None:
        body = {key: " ".join(value.split()) if isinstance(value, str) else value for key, value in self.params.items()}
        text = _CANONICAL.encode([self.endpoint, body])
        # Made once: every call is looked up by it several times on its way.
        object.__setattr__(self, "fingerprint", hashlib.sha256(text.encode()).hexdigest())

    @property
    def credits(self) -> int:
        """What a successful answer will cost."""
        return CREDITS[self.endpoint]


class SourceError(Exception):
    """A request did not get its answer. `kind` is the word for it everywhere; `retryable` says who may try again.

    `possibly_billed`: the request may have been served and charged although no answer was seen.
    """

    kind: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    possibly_billed: bool = False


class TransientSourceError(SourceError):
    """Rate limit, upstream failure, time-out, cut connection: the same request may succeed later."""

    kind = "transient"
    retryable = True

    def __init__(self, message: str, *, possibly_billed: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.possibly_billed = possibly_billed
        self.retry_after_s = retry_after_s


class TerminalSourceError(SourceError):
    """The request is wrong or refused; repeating it changes nothing."""

    kind = "terminal"


class NotFoundError(TerminalSourceError):
    """The source says that what was asked for does not exist. Counted apart from what could not be fetched."""

    kind = "not_found"


class UnauthorizedError(TerminalSourceError):
    """The key is missing, wrong or revoked. Every further request would fail alike."""

    kind = "unauthorized"


class OutOfCreditsError(TerminalSourceError):
    """The account has no credits left. Every further request would fail alike."""

    kind = "out_of_credits"


class BudgetExhaustedError(TerminalSourceError):
    """The run's own budget (COLLECTION_MAX_CREDITS) does not allow the request; it was not sent."""

    kind = "budget"


class MalformedResponseError(SourceError):
    """The answer is not what the wire format says. It may have been charged."""

    kind = "malformed"

    def __init__(self, message: str, *, possibly_billed: bool = True) -> None:
        super().__init__(message)
        self.possibly_billed = possibly_billed


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP exchange, or one that was not allowed or not answered.

    `number` counts from 1 within the request; `final`: no further exchange of this request follows.
    `body` is the JSON answer of a success, else None. `credits_charged` is what the answer says: 0 if none was seen,
    the list price for a success that does not say. Exactly one of `body` and `error` is set. A success with nothing
    found is a success.
    """

    request: ApiRequest
    number: int
    final: bool
    started_at: datetime
    elapsed_ms: int
    http_status: int | None = None
    status: int | None = None
    request_id: str | None = None
    credits_charged: int = 0
    body: bytes | None = None
    error: SourceError | None = None


Admit = Callable[[ApiRequest], Awaitable[None]]
"""Asked before every request is sent; raises `BudgetExhaustedError` when it must not be."""


class Source(Protocol):
    """Where answers come from."""

    def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        """Send all requests, many at a time, and yield every exchange as it ends, in no particular order.

        Never raises for a single request's failure; after `UnauthorizedError` or `OutOfCreditsError` the remaining
        requests are not sent and end with the same error. Memory is bounded by the requests in flight.
        """


def parse_body(body: bytes) -> dict[str, Any]:
    """The JSON object in a stored response body, which was checked on arrival."""
    value = json.loads(body)
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response as the steps see it, whether bought just now or reused from an unfinished attempt."""

    request: ApiRequest
    request_id: str
    received_at: datetime
    body: bytes

    def payload(self) -> dict[str, Any]:
        """The JSON object of the answer."""
        return parse_body(self.body)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request that ended without an answer, and the kind of its last error (`not_found` among them)."""

    request: ApiRequest
    kind: str
    message: str
