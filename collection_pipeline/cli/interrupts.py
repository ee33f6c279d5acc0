"""Ctrl-C while Dagster executes a run in this process: of one in a step it makes a failure, of any other a note."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

from collection_pipeline.engine.runs.interrupts import INTERRUPTS

LOOK_EVERY_S = 0.5

_WAKE = signal.SIGUSR1
"""Dagster puts handlers of its own in place of those for interrupts, and none in place of this one's."""


@contextmanager
def taken_while(is_waiting: Callable[[], bool], came: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread, which has to enter this, once an interrupt `came` and `is_waiting`.

    The two may come about in either order. All handlers are put back at the end: Dagster leaves one of its own.
    """
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            if came() and is_waiting():
                signal.pthread_kill(main.ident or 0, _WAKE)
                return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if not over.is_set():
            raise KeyboardInterrupt

    main = threading.main_thread()
    thread = threading.Thread(target=look, name="interrupts", daemon=True)
    with ExitStack() as undone:
        for each in (*INTERRUPTS, _WAKE):
            undone.callback(signal.signal, each, signal.getsignal(each))
        signal.signal(_WAKE, interrupt)
        thread.start()
        undone.callback(thread.join)
        try:
            yield
        finally:  # woken up even here, what is to be undone is: there is one wake-up at the most
            over.set()
