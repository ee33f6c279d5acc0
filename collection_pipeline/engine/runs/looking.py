"""Looking, every so often while something is under way, whether what it depends on has happened elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def looking(look: Callable[[], bool], *, every_s: float, name: str) -> Iterator[None]:
    """Have a thread `look` until it says that it has seen enough, or the block ends.

    Whatever goes wrong in looking costs no more than that look: a database that is away may be back for the next.
    """
    over = threading.Event()

    def keep_looking() -> None:
        while not over.wait(every_s):
            with suppress(Exception):
                if look():
                    return

    thread = threading.Thread(target=keep_looking, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
