"""Alerts go out through apprise, or to the log. A channel that fails never fails a job, and is itself visible."""

from __future__ import annotations

from collections.abc import Sequence

from collection_pipeline.engine.logs import log_of
from collection_pipeline.engine.store import Store, Transition
from collection_pipeline.engine.visible import visible

log = log_of("alerts")

PROJECT = __name__.partition(".")[0]
"""Begins every title: a channel may be shared with others."""


def send(store: Store, transitions: Sequence[Transition], urls: Sequence[str]) -> None:
    """Announce episodes that opened or healed, one message each, and record what became of it. Never raises.

    What cannot be recorded is sent once more by whoever takes the overdue ones: better twice than never.
    """
    for transition in transitions:
        text = "\n".join(map(visible, transition.text.splitlines()))
        (log.info if transition.change == "healed" else log.warning)("%s", text)
        # Without channels the log is where alerts go.
        problem = _deliver(transition, text, urls) if urls else None
        if problem is not None:
            log.error("The alert %s was not delivered: %s Check ALERT_URLS.", transition.key, problem)
        try:
            if problem is None:
                store.mark_delivered(transition)
            else:
                store.mark_undelivered(transition, problem)
        except Exception as error:  # noqa: BLE001 - the job must not notice
            log.error("What became of the alert %s could not be recorded: %s", transition.key, error)


def _deliver(transition: Transition, text: str, urls: Sequence[str]) -> str | None:
    """None when every channel took the message, else what went wrong, in words that show no address."""
    try:
        import apprise  # only for those who have a channel

        channels = apprise.Apprise()
        unknown = [number for number, url in enumerate(urls, 1) if not channels.add(url)]
        if transition.change == "healed":
            notify_type = apprise.NotifyType.SUCCESS
        elif transition.key.startswith("failed:"):
            notify_type = apprise.NotifyType.FAILURE
        else:
            notify_type = apprise.NotifyType.WARNING
        title = visible(f"{PROJECT}: {transition.title}")
        # Plain text, so that a channel's own markup stays inert in whatever a source said.
        taken = channels.notify(text, title, notify_type, body_format=apprise.NotifyFormat.TEXT)
    except Exception as error:  # noqa: BLE001 - a plug-in of any service, with any failure: the job must not notice
        return f"a channel raised {type(error).__name__}."
    if unknown:
        return f"in ALERT_URLS, {_unknown(unknown)}."
    return None if taken else "a channel refused it."


def problem_of(urls: Sequence[str]) -> str | None:
    """What is wrong with the addresses, in words that show none; None if apprise can read them all. Sends nothing."""
    import apprise

    unknown = [number for number, url in enumerate(urls, 1) if apprise.Apprise.instantiate(url) is None]
    return _unknown(unknown) if unknown else None


def _unknown(numbers: Sequence[int]) -> str:
    return f"address {', '.join(map(str, numbers))} is not one that apprise knows"
