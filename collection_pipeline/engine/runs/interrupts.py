"""Interrupts, whatever becomes of them: of one in a step Dagster makes a failure, of others a note or nothing."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

LOOK_EVERY_S = 2.0

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noted() -> Iterator[Callable[[], Sequence[int]]]:
    """Give the one who knows which interrupts came since, the first of them first, whoever handles them.

    Outside the main thread, which alone is interrupted, none come.
    """
    if threading.current_thread() is not threading.main_thread():
        yield tuple
        return
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
    return [each for each in signals if each in INTERRUPTS]


@contextmanager
def interrupted_when(asked: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Interrupt this process once somebody has `asked` for it elsewhere; give the one who knows whether that came.

    For what no launcher can end.
    """
    over, came = threading.Event(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            if asked():
                came.set()
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=look, name="asked to end", daemon=True)
    thread.start()
    try:
        yield came.is_set
    finally:
        over.set()
        thread.join()
