"""Answers that go wrong below the level of the wire format."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send


class CutResponse(JSONResponse):
    """Sends half of its body and lets the server cut the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": half(self.body), "more_body": True})


def half(body: bytes | memoryview) -> bytes:
    """The first half of a JSON document, which is not one."""
    return bytes(body[: len(body) // 2])


async def hang(request: Request, seconds: float) -> None:
    """Do nothing for so long, or until the client has gone. The request must have been read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    with suppress(TimeoutError):
        await asyncio.wait_for(gone(), seconds)
