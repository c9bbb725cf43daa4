"""Real servers, for what is compared with them."""

from collections.abc import Iterator

import pytest
from truth import Real

from holdfast.embedded import ThrowawayNodes
from rig.servers import PROGRAMS


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    with ThrowawayNodes(1) as nodes:
        connection = Real(str(nodes[0].socket))
        yield connection
        connection.close()


@pytest.fixture(scope="module", params=PROGRAMS)
def any_real(request: pytest.FixtureRequest) -> Iterator[Real]:
    """Return a connection to a server of each kind that is there: they are not equally old."""
    with ThrowawayNodes(1, binary=PROGRAMS[request.param]) as nodes:
        connection = Real(str(nodes[0].socket))
        yield connection
        connection.close()
