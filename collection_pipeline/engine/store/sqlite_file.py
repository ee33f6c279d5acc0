"""Two copies of the SQLite library must never have one file open at once in one process.

Python's `sqlite3` and the ADBC driver each bring their own. SQLite locks files with POSIX advisory locks, which belong
to the process: when one copy closes the file, the locks of the other are gone without a word, another process may then
take the write-ahead log away, and committed rows are lost (https://www.sqlite.org/howtocorrupt.html, section 2.2). So
the driver that reads data frames fastest is admitted only while this process has no other connection to the file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from weakref import WeakSet

from sqlalchemy import Engine


class SqliteFile:
    """Who in this process has one database file open: connections of `sqlite3`, or one reader of another library."""

    _files: ClassVar[dict[Path, SqliteFile]] = {}
    _registry = threading.Lock()

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections = 0
        self._lent = False
        self._engines: WeakSet[Engine] = WeakSet()

    @classmethod
    def of(cls, path: Path) -> SqliteFile:
        """The one instance for this file."""
        with cls._registry:
            return cls._files.setdefault(path.resolve(), cls())

    def register(self, engine: Engine) -> None:
        """Have the idle connections of this engine closed before the file is lent."""
        self._engines.add(engine)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Hold while a `sqlite3` connection is in use; waits until a lent file is back."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lent)
            self._connections += 1
        try:
            yield
        finally:
            with self._changed:
                self._connections -= 1

    @contextmanager
    def lent(self) -> Iterator[bool]:
        """Lend the file to another library, if nothing in this process uses it: yields whether it was lent."""
        with self._changed:
            free = not self._connections and not self._lent
            self._lent = self._lent or free
        try:
            if free:
                for engine in list(self._engines):
                    engine.dispose()
            yield free
        finally:
            if free:
                with self._changed:
                    self._lent = False
                    self._changed.notify_all()
