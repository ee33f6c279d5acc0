"""The emulator as a server: for itself until it is interrupted, or embedded in another program while that uses it."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from collection_pipeline.sources.emulator.account import Account
from collection_pipeline.sources.emulator.app import create_app
from collection_pipeline.sources.emulator.options import EmulatorOptions

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8765


@dataclass(frozen=True, slots=True)
class RunningEmulator:
    """An embedded emulator: where it listens, a key that it takes, and its books."""

    base_url: str
    api_key: str
    account: Account


def serve(
    options: EmulatorOptions,
    *,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted; call it from the main thread. `on_ready` gets the base URL. Port 0 picks a free one.

    Raises `OSError` if the address cannot be bound.
    """
    with _listen(host, port) as listener:
        if on_ready:
            on_ready(_base_url(listener))
        _server(options)[0].run(sockets=[listener])


@contextmanager
def embedded(options: EmulatorOptions) -> Iterator[RunningEmulator]:
    """The emulator on a free loopback port, in a thread of this process, so that it cannot outlive it."""
    with _listen(LOOPBACK, 0) as listener:
        server, account = _server(options)
        # The socket listens already: who connects before the thread is ready just waits for it.
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="emulator", daemon=True)
        thread.start()
        try:
            yield RunningEmulator(_base_url(listener), f"emulator-{secrets.token_hex(16)}", account)
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def _server(options: EmulatorOptions) -> tuple[uvicorn.Server, Account]:
    app = create_app(options)
    # Nothing is logged: the cut connections that a fault asks for would be reported as the server's own errors.
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, log_level="critical", access_log=False, server_header=False, backlog=2048
    )
    return uvicorn.Server(config), app.state.account


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
