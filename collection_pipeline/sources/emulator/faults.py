"""Named, seeded faults: which of the emulator's answers go wrong, and how.

The language is one line, for a command line, an environment variable or a PUT while the emulator runs:

    maps_detail=upstream_error:0.3, maps_search=empty_result@first=1, news=rate_limit@retry_after=2

Rules are separated by commas (or line ends) and are `endpoint=fault`, with a share from 0 to 1 of the requests (`:0.3`,
default all) and conditions (`@key=value`). `*` is every endpoint. The first rule that applies decides. Which requests
fall into the share depends on the seed, the request and how often it came, not on the order of arrival: a fault is
repeatable however many requests are in flight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeVar, get_args

from collection_pipeline.sources.contract import ApiRequest, Endpoint
from collection_pipeline.sources.emulator.chance import chance

FaultName = Literal[
    "rate_limit",  # 1029, with Retry-After if asked for
    "upstream_error",  # 1502, or the `status` given
    "timeout",  # no answer for `seconds`, then 1504
    "cut_connection",  # the connection breaks in the middle of the answer
    "malformed_body",  # HTTP 200 with half a JSON document
    "empty_result",  # success without a result key
    "not_found",  # 1004
    "unauthorized",  # 1001
    "out_of_credits",  # 1020
    "slow",  # a good answer, `seconds` late
]
Target = Endpoint | Literal["*"]
TARGETS: tuple[Target, ...] = (*get_args(Endpoint), "*")
FAULTS: tuple[FaultName, ...] = get_args(FaultName)
_Word = TypeVar("_Word", bound=str)
_UPSTREAM_STATUSES = (1500, 1502, 1503, 1504)
_RULE = re.compile(
    r"(?P<endpoint>[^=:@]+)=(?P<fault>[^=:@]+)(?::(?P<share>[^=:@]+))?(?P<conditions>(?:@[^=@]+=[^@]+)*)"
)


class FaultSyntaxError(ValueError):
    """A text that describes no faults; the message says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule.

    `first`: only the first so many requests to the endpoint. `tries`: only the first so many tries of each request,
    so that a retry succeeds. `feature_id`: only this place. `seconds`: how long `slow` and `timeout` wait.
    `retry_after`: seconds in the header of `rate_limit`. `status`: of `upstream_error`. `charged`: whether the
    account pays for `timeout`, `cut_connection` and the errors; `malformed_body` is always paid for.
    """

    endpoint: Target
    name: FaultName
    share: float = 1.0
    first: int | None = None
    tries: int | None = None
    feature_id: str | None = None
    seconds: float | None = None
    retry_after: int | None = None
    status: int | None = None
    charged: bool = False

    def __str__(self) -> str:
        share = "" if self.share == 1 else f":{self.share:g}"
        return f"{self.endpoint}={self.name}{share}" + "".join(
            f"@{key}={_written(value)}"
            for key in _CONDITIONS
            if (value := getattr(self, key)) is not None and value is not False
        )


_CONDITIONS = [field.name for field in fields(Fault)[3:]]


@dataclass(frozen=True, slots=True)
class Faults:
    """All rules, in their order. `str()` gives back the text."""

    rules: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.rules))

    def decide(self, request: ApiRequest, *, seed: int, arrival: int, attempt: int) -> Fault | None:
        """The fault of this request; `arrival` and `attempt` count from 1, by endpoint and by request."""
        for position, rule in enumerate(self.rules):
            if (
                rule.endpoint in (request.endpoint, "*")
                and (rule.first is None or arrival <= rule.first)
                and (rule.tries is None or attempt <= rule.tries)
                and (rule.feature_id is None or rule.feature_id == request.params.get("feature_id"))
                and (
                    rule.share >= 1
                    or chance(seed, "fault", position, rule.name, request.fingerprint, attempt) < rule.share
                )
            ):
                return rule
        return None


def parse_faults(text: str) -> Faults:
    """Read the fault language; an empty text is no faults. Raises `FaultSyntaxError`."""
    rules = [rule.strip() for rule in re.split(r"[,\n]", text)]
    return Faults(tuple(_parse_rule(rule) for rule in rules if rule))


def _parse_rule(text: str) -> Fault:
    match = _RULE.fullmatch(text.replace(" ", ""))
    if not match:
        raise FaultSyntaxError(
            f"fault {text!r} is not of the form endpoint=fault[:share][@key=value…], "
            "for example maps_detail=upstream_error:0.3"
        )
    endpoint = _one_of(text, "endpoint", match["endpoint"], TARGETS)
    name = _one_of(text, "fault", match["fault"], FAULTS)
    conditions: dict[str, str] = {}
    for condition in match["conditions"].split("@")[1:]:
        key, _, value = condition.partition("=")
        conditions[_one_of(text, "condition", key, tuple(_CONDITIONS))] = value
    return Fault(
        endpoint=endpoint,
        name=name,
        share=_number(text, "share", match["share"] or "1", lowest=0, highest=1),
        first=_whole(text, conditions, "first"),
        tries=_whole(text, conditions, "tries"),
        feature_id=conditions.get("feature_id"),
        seconds=_number(text, "seconds", conditions["seconds"]) if "seconds" in conditions else None,
        retry_after=_whole(text, conditions, "retry_after"),
        status=_status(text, conditions),
        charged=_one_of(text, "charged", conditions.get("charged", "no"), ("no", "yes")) == "yes",
    )


def _one_of(text: str, what: str, given: str, known: tuple[_Word, ...]) -> _Word:
    for word in known:
        if word == given:
            return word
    raise FaultSyntaxError(f"fault {text!r}: unknown {what} {given!r}; known are {', '.join(known)}")


def _number(text: str, what: str, given: str, *, lowest: float = 0, highest: float = 3600) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not lowest <= number <= highest:
        raise FaultSyntaxError(f"fault {text!r}: {what} must be a number from {lowest:g} to {highest:g}, not {given!r}")
    return number


def _whole(text: str, conditions: Mapping[str, str], key: str) -> int | None:
    if key not in conditions:
        return None
    if not re.fullmatch("[0-9]{1,9}", conditions[key]):
        raise FaultSyntaxError(f"fault {text!r}: {key} must be a whole number up to 999999999")
    return int(conditions[key])


def _status(text: str, conditions: Mapping[str, str]) -> int | None:
    status = _whole(text, conditions, "status")
    if status is not None and status not in _UPSTREAM_STATUSES:
        known = ", ".join(map(str, _UPSTREAM_STATUSES))
        raise FaultSyntaxError(f"fault {text!r}: status must be one of {known}, not {status}")
    return status


def _written(value: object) -> str:
    if value is True:
        return "yes"
    return f"{value:g}" if isinstance(value, float) else str(value)
