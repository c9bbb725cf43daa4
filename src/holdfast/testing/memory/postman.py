"""Who hears what nodes publish: calls go to the inboxes of the universe's clients, at once."""

import weakref

from ...drivers.post import Post


class Postman:
    """The inboxes of all clients. Whoever uses it has the mutex of the universe's time."""

    def __init__(self) -> None:
        self._posts: weakref.WeakSet[Post] = weakref.WeakSet()
        self._bag: list[tuple[int, Post, bytes]] = []
        """What scripts have published, until they are done."""

    def add(self, post: Post) -> None:
        """Deliver to a client from now on, for as long as it lives."""
        self._posts.add(post)
        post.start_listening()
        for node in range(post.nodes):
            post.hears(node)

    def strike_out(self, post: Post) -> None:
        """Deliver to a client no more."""
        self._posts.discard(post)

    def take(self, node: int, channel: bytes, call: bytes) -> int:
        """Take a call that a node's script makes. Returns how many will hear it."""
        name = channel.decode()
        hearers = [post for post in self._posts if post.name == name]
        self._bag += [(node, post, call) for post in hearers]
        return len(hearers)

    def deliver(self, now: float) -> list[str]:
        """Put every call where its waiter looks. Returns the tokens that were called."""
        bag, self._bag = self._bag, []
        for node, post, call in bag:
            post.put(node, call, now)
        return [call.split()[0].decode() for _, _, call in bag]

    def reconnect(self, node: int) -> None:
        """Tell everybody that a node is heard again: they may have missed a call."""
        for post in list(self._posts):
            post.away(node)
            post.hears(node)
