"""What every node said in a round, in words."""

from collections.abc import Sequence

from .core.tally import Tally
from .errors import NodeReport
from .wire.endpoint import Endpoint


def reports_of(endpoints: Sequence[Endpoint], tally: Tally) -> list[NodeReport]:
    """Put a tally into words, a line per node."""
    return [
        NodeReport(str(endpoint), str(vote) if vote is not None else "no answer in time")
        for endpoint, vote in zip(endpoints, tally.votes, strict=True)
    ]
