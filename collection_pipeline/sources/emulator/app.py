"""The emulator as an ASGI app: SerpBase's wire format over HTTP, and two pages of its own under /emulator/.

`GET /emulator/state` is the account's books. `GET /emulator/faults` is the fault text in force, `PUT` replaces it.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from collection_pipeline.sources.contract import ApiRequest, Endpoint
from collection_pipeline.sources.emulator.account import Account
from collection_pipeline.sources.emulator.answers import Day, Row
from collection_pipeline.sources.emulator.broken import CutResponse, half, hang
from collection_pipeline.sources.emulator.faults import Fault, FaultName, FaultSyntaxError, parse_faults
from collection_pipeline.sources.emulator.options import EmulatorOptions
from collection_pipeline.sources.emulator.places import all_places
from collection_pipeline.sources.emulator.requests import InvalidRequestError, read_params
from collection_pipeline.sources.wire import PATHS, RESULT_KEYS

NOTICE = (
    "SerpBase emulator: places from airportsdata; ids, ratings, review counts, news and organic results are synthetic"
)
_TEXTS = {
    1000: "invalid request",
    1001: "unauthorized",
    1004: "not found",
    1020: "insufficient credits",
    1029: "rate limited",
    1500: "internal error",
    1502: "upstream error",
    1503: "upstream unavailable",
    1504: "upstream timeout",
}
"""Error texts: 1001, 1020 and 1029 as seen from the real service, the others in our own words."""
_STATUS_OF_FAULT: Mapping[FaultName, int] = {
    "rate_limit": 1029,
    "upstream_error": 1502,
    "unauthorized": 1001,
    "out_of_credits": 1020,
    "not_found": 1004,
    "timeout": 1504,
}
_HANG_S = 600.0
_SLOW_S = 5.0


def create_app(options: EmulatorOptions = EmulatorOptions()) -> Starlette:  # noqa: B008 - frozen
    """The app. The account and the faults in force live as long as it does; `app.state.account` is the account."""
    emulator = _Emulator(options)
    app = Starlette(
        routes=[
            *(Route(path, partial(emulator.api, endpoint), methods=["POST"]) for endpoint, path in PATHS.items()),
            Route("/emulator/state", emulator.show_state, methods=["GET"]),
            Route("/emulator/faults", emulator.show_or_set_faults, methods=["GET", "PUT"]),
        ]
    )
    app.state.account = emulator.account
    return app


@dataclass(frozen=True, slots=True)
class _Answer:
    """What to say: a business status, what was charged, and other fields. `fault` breaks the answer itself."""

    status: int
    credits_charged: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: FaultName | None = None


def _error(
    status: int, text: str | None = None, *, credits_charged: int = 0, retry_after: int | None = None
) -> _Answer:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return _Answer(status, credits_charged, {"error": text or _TEXTS[status]}, headers)


class _Emulator:
    def __init__(self, options: EmulatorOptions) -> None:
        self.account = Account(options.credits)
        self._options = options
        self._faults = options.faults

    async def api(self, endpoint: Endpoint, http: Request) -> Response:
        """One call of the wire format."""
        started = time.perf_counter()
        if self._options.latency_ms:
            await asyncio.sleep(self._options.latency_ms / 1000)
        answer = await self._answer(endpoint, http)
        envelope = {
            "status": answer.status,
            "request_id": str(uuid.uuid4()),
            "elapsed_ms": round((time.perf_counter() - started) * 1000),
            "credits_charged": answer.credits_charged,
            "search_type": endpoint,
            **answer.fields,
            "emulator": NOTICE,
        }
        response = (CutResponse if answer.fault == "cut_connection" else JSONResponse)(envelope, headers=answer.headers)
        if answer.fault == "malformed_body":
            return Response(half(response.body), headers=answer.headers, media_type="application/json")
        return response

    async def _answer(self, endpoint: Endpoint, http: Request) -> _Answer:
        key = http.headers.get("X-API-Key", "").strip()
        if not key or key.startswith(self._options.refused_key_prefix):
            return _error(1001)
        try:
            params = read_params(endpoint, await http.body())
        except InvalidRequestError as error:
            return _error(1000, f"invalid request: {error}")
        request = ApiRequest(endpoint, params)
        fault = self._fault_of(request)
        return await self._spoiled(request, fault, http) if fault else self._success(request)

    async def _spoiled(self, request: ApiRequest, fault: Fault, http: Request) -> _Answer:
        match fault.name:
            case "slow":
                await asyncio.sleep(_SLOW_S if fault.seconds is None else fault.seconds)
                return self._success(request)
            case "empty_result":
                return self._success(request, empty=True)
            case "cut_connection" | "malformed_body":
                answer = self._success(request, charged=fault.name == "malformed_body" or fault.charged)
                return replace(answer, fault=fault.name)
        charged = self.account.charge(request) if fault.charged else 0
        if fault.name == "timeout":
            await hang(http, _HANG_S if fault.seconds is None else fault.seconds)
        status = fault.status or _STATUS_OF_FAULT[fault.name]
        return _error(status, credits_charged=charged, retry_after=fault.retry_after)

    def _fault_of(self, request: ApiRequest) -> Fault | None:
        arrival, attempt = self.account.arrived(request)
        fault = self._faults.decide(request, seed=self._options.seed, arrival=arrival, attempt=attempt)
        if fault:
            self.account.faults[str(fault)] += 1
        return fault

    def _success(self, request: ApiRequest, *, empty: bool = False, charged: bool = True) -> _Answer:
        if not self.account.can_pay(request):
            return _error(1020)
        result = None if empty else self._result(request)
        if request.endpoint == "maps_detail" and result is None and not empty:
            return _error(1004, credits_charged=self.account.charge(request) if self._options.charge_not_found else 0)
        fields: dict[str, Any] = {}
        if request.endpoint != "maps_detail":
            fields = {"query": request.params["q"], "page": request.params["page"]}
        if result:
            fields[RESULT_KEYS[request.endpoint][0]] = result
        charged = charged and (bool(result) or self._options.charge_empty)
        return _Answer(0, self.account.charge(request) if charged else 0, fields)

    def _result(self, request: ApiRequest) -> list[Row] | Row | None:
        day = Day(all_places(), self._options)
        match request.endpoint:
            case "maps_detail":
                return day.maps_detail(str(request.params["feature_id"]))
            case "maps_search":
                return day.maps_search(request.params)
            case "search":
                return day.search(request.params)
            case "news":
                return day.news(request.params)

    async def show_state(self, _: Request) -> Response:
        """The books."""
        return JSONResponse(self.account.report())

    async def show_or_set_faults(self, http: Request) -> Response:
        """The faults in force, as text; PUT replaces them all."""
        if http.method == "PUT":
            try:
                self._faults = parse_faults((await http.body()).decode("utf-8", "replace"))
            except FaultSyntaxError as error:
                return PlainTextResponse(f"{error}\n", status_code=400)
        return PlainTextResponse(f"{self._faults}\n")
