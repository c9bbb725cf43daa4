"""Five nodes that lose their memory one after the other, while a lease is held throughout."""

import contextlib
from collections.abc import Callable

import holdfast
from amnesia.harness import CALM, SLACK, Contenders, Witness, abstention
from holdfast.embedded import ThrowawayNodes
from rig.actor import ACTORS
from rig.servers import token_on
from rig.waiting import until

MAX_TTL = 1.0


def test_a_lease_outlives_all_its_nodes(
    own_nodes: Callable[..., ThrowawayNodes],
    connect: Callable[..., holdfast.Client],
    cleanup: contextlib.ExitStack,
    name: str,
) -> None:
    nodes = own_nodes(5)
    options = {"guard": True, "ttl": MAX_TTL, "max_ttl": MAX_TTL}
    actors = [make(*nodes.urls, **options, node_timeout=CALM) for make in ACTORS.values()]
    for actor in actors:
        cleanup.callback(actor.close)
    client = connect(*nodes.urls, **options)
    lease = client.lock(name).acquire(wait=SLACK)
    lost: list[holdfast.LossReason | None] = []
    lease.on_lost(lambda lease: lost.append(lease.lost.reason))
    others = Contenders(actors, name, Witness(), count=20, ttl=MAX_TTL, pause=0.1)
    cleanup.callback(others.stop)

    for node in nodes:
        others.have_all_tried()
        node.restart()
        until(  # its abstention has ended, and a renewal has repaired it
            lambda node=node: token_on(node, name) == lease.token,
            within=abstention(MAX_TTL) + SLACK,
            what="for a node to be repaired",
        )
        assert lease.is_held
        assert not lost

    others.have_all_tried()
    others.stop()
    assert not others.witness.stays, "somebody else had it meanwhile"
    fence = lease.fence
    assert lease.release() is holdfast.Released.FREED
    with client.lock(name, wait=SLACK) as later:
        assert later.fence > fence
