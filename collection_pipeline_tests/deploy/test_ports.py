"""Ports for servers of our own: out of the way of everybody's connections, and given up to whoever was quicker."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import psycopg

from deploy.ports import FIRST, first_ephemeral, free_port
from deploy.postgres.server import PostgresServer


def test_a_port_is_free_and_none_that_an_outgoing_connection_may_get() -> None:
    port = free_port()
    assert FIRST <= port < first_ephemeral()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_server_whose_port_was_taken_meanwhile_starts_on_another() -> None:
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # root's server runs as somebody else
        server = PostgresServer(Path(folder) / "server")
        with socket.create_server(("127.0.0.1", server.port)) as quicker:
            server.start()
            try:
                assert server.port != quicker.getsockname()[1]
                with psycopg.connect(server.url()) as connection:
                    assert connection.execute("SELECT 1").fetchone() == (1,)
            finally:
                server.stop("immediate")
