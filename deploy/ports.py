"""Ports of loopback for servers that are started a moment later."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path

FIRST = 10_000
"""Below it are ports that services are known by."""


def free_port() -> int:
    """A port that nobody listens on, out of those that the kernel does not hand out by itself.

    One of the others, of which every outgoing connection takes one, may be gone before the server asks for it.
    """
    while True:
        port = secrets.choice(range(FIRST, max(first_ephemeral(), FIRST + 1000)))
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def first_ephemeral() -> int:
    """The first port that the kernel hands out; where it does not say which, the lowest of the usual ones."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except FileNotFoundError:
        return 32_768
