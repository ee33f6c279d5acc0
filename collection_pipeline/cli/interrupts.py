"""Ctrl-C while Dagster executes a run in this process: it is taken in a step, and only noted between two of them."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

LOOK_EVERY_S = 0.5

_INTERRUPTS = {signal.SIGINT, signal.SIGTERM}

_WAKE = signal.SIGUSR1
"""Dagster puts handlers of its own in place of those for interrupts, and none in place of this one's."""


@contextmanager
def taken_while(is_waiting: Callable[[], bool]) -> Iterator[Sequence[int]]:
    """Raise `KeyboardInterrupt` in the main thread, which has to enter this, if an interrupt came and `is_waiting`.

    Interrupts are seen whoever handles them, and in whichever order the two come about. Gives those that came, to
    be looked at after the block.
    """
    came: list[int] = []
    seen, arriving = socket.socketpair()
    arriving.setblocking(False)

    def listen() -> None:
        while True:
            with suppress(TimeoutError):
                signals = seen.recv(64)
                if not signals:  # closed: the block has ended
                    return
                came.extend(_INTERRUPTS.intersection(signals))
            if came:
                seen.settimeout(LOOK_EVERY_S)
            if came and is_waiting():
                signal.pthread_kill(main.ident or 0, _WAKE)
                return

    main = threading.main_thread()
    thread = threading.Thread(target=listen, name="interrupts", daemon=True)
    handler_before = signal.signal(_WAKE, _interrupt)
    descriptor_before = signal.set_wakeup_fd(arriving.fileno(), warn_on_full_buffer=False)
    thread.start()
    try:
        yield came
    finally:
        signal.set_wakeup_fd(descriptor_before)
        arriving.close()
        thread.join()
        seen.close()
        signal.signal(_WAKE, handler_before)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
