"""Ctrl-C while Dagster executes a run in this process: of one in a step it makes a failure, of any other a note."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType

LOOK_EVERY_S = 0.5

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)

_WAKE = signal.SIGUSR1
"""Dagster puts handlers of its own in place of those for interrupts, and none in place of this one's."""


@contextmanager
def noted() -> Iterator[Callable[[], Sequence[int]]]:
    """Give the one who knows which interrupts came since, the first of them first, whoever handles them."""
    seen, arriving = socket.socketpair()
    with seen, arriving:
        arriving.setblocking(False)
        before = signal.set_wakeup_fd(arriving.fileno(), warn_on_full_buffer=False)
        try:
            yield partial(_came, seen)
        finally:
            signal.set_wakeup_fd(before)


def _came(seen: socket.socket) -> Sequence[int]:
    try:  # without taking them out: the socket is the memory
        signals = seen.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return ()
    return [each for each in signals if each in _INTERRUPTS]


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
        for each in (*_INTERRUPTS, _WAKE):
            undone.callback(signal.signal, each, signal.getsignal(each))
        signal.signal(_WAKE, interrupt)
        thread.start()
        undone.callback(thread.join)
        try:
            yield
        finally:  # woken up even here, what is to be undone is: there is one wake-up at the most
            over.set()
