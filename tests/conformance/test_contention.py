"""Many who want the same: never two at once, and everybody in the end."""

import threading
from collections.abc import Callable

from rig.actor import Actor

THREADS = 6
TURNS = 5


class Room:
    """Something for one at a time, that notices a second one. Nothing else protects it."""

    def __init__(self) -> None:
        self.inside = 0
        self.total = 0
        self.overlaps = 0

    def visit(self) -> None:
        self.inside += 1
        if self.inside != 1:
            self.overlaps += 1
        seen = self.total
        threading.Event().wait(0.0005)  # invite the others in
        self.total = seen + 1
        self.inside -= 1


def compete(actors: list[Actor], name: str, in_thread: Callable) -> Room:
    room = Room()

    def work(actor: Actor) -> None:
        for _ in range(TURNS):
            with actor.holding(name, ttl=20, wait=None):
                room.visit()

    for thread in [in_thread(work, actor) for actor in actors]:
        thread.result()
    return room


def test_threads_of_one_client_never_overlap(actor: Actor, name: str, in_thread: Callable) -> None:
    room = compete([actor] * THREADS, name, in_thread)
    assert room.overlaps == 0
    assert room.total == THREADS * TURNS


def test_clients_never_overlap(
    new_actor: Callable[[], Actor], name: str, in_thread: Callable
) -> None:
    room = compete([new_actor() for _ in range(THREADS)], name, in_thread)
    assert room.overlaps == 0
    assert room.total == THREADS * TURNS
