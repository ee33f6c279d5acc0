"""The emulator's books: what was asked, what was charged for what, which faults fired."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from collection_pipeline.sources.contract import ApiRequest


@dataclass(slots=True)
class Account:
    """One account, shared by all keys. `balance` None: credits without end."""

    balance: int | None = None
    requests: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    charges: Counter[str] = field(default_factory=Counter)
    feature_id_charges: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    credits_charged: int = 0

    def arrived(self, request: ApiRequest) -> tuple[int, int]:
        """Count a request; returns how many of its endpoint, and how many like it, have come by now."""
        self.requests[request.endpoint] += 1
        self.attempts[request.fingerprint] += 1
        return self.requests[request.endpoint], self.attempts[request.fingerprint]

    def can_pay(self, request: ApiRequest) -> bool:
        """Whether the balance is enough."""
        return self.balance is None or self.balance >= request.credits

    def charge(self, request: ApiRequest) -> int:
        """Charge a request; returns the credits."""
        if self.balance is not None:
            self.balance -= request.credits
        self.credits_charged += request.credits
        self.charges[request.fingerprint] += 1
        if request.endpoint == "maps_detail":
            self.feature_id_charges[str(request.params["feature_id"])] += 1
        return request.credits

    def report(self) -> dict[str, Any]:
        """The books as JSON: counts by endpoint, by request fingerprint and by feature_id."""
        return {
            "requests": self.requests,
            "credits_charged": self.credits_charged,
            "credits_left": self.balance,
            "charges": self.charges,
            "feature_id_charges": self.feature_id_charges,
            "faults": self.faults,
        }
