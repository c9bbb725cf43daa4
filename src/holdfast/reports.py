"""What every node said in a round, in words, and the error that says so."""

from collections.abc import Sequence

from .core.guard import Guard
from .core.outcomes import Miss, Missed
from .core.tally import Tally
from .errors import Busy, NodeReport, RoundFailed, TimedOut, Unreachable
from .wire.endpoint import Endpoint


def reports_of(endpoints: Sequence[Endpoint], tally: Tally) -> list[NodeReport]:
    """Put a tally into words, a line per node."""
    return [
        NodeReport(str(endpoint), str(vote) if vote is not None else "no answer in time")
        for endpoint, vote in zip(endpoints, tally.votes, strict=True)
    ]


def error_of(endpoints: Sequence[Endpoint], name: str, missed: Missed, guard: Guard) -> RoundFailed:
    """Return the error for a lock that was not acquired."""
    reports = reports_of(endpoints, missed.tally)
    if guard.disputed_ms:
        told = f"a node was told of max_ttl={guard.disputed_ms / 1000:g}"
        ours = f"this client of {guard.max_ttl_ms / 1000:g}; all must have the same"
        reports.append(NodeReport("all nodes", f"{told}, {ours}"))
    match missed.why:
        case Miss.BUSY:
            return Busy(name, reports)
        case Miss.TIMED_OUT:
            return TimedOut(name, reports, missed.waited)
        case Miss.UNREACHABLE:
            return Unreachable(name, reports, missed.waited)
