"""What stands in line for a connection that is on its way."""

from collections import deque
from collections.abc import Iterator

from ..core.effects import Command, Verb
from ..core.votes import Vote
from ..wire.round import Round


class Backlog:
    """Rounds that one node is still to hear of, in order. The oldest go if there are too many."""

    def __init__(self, node: int, most: int) -> None:
        self._node = node
        self._most = most
        self._rounds: deque[Round] = deque(maxlen=2 * most)

    def __bool__(self) -> bool:
        return bool(self._rounds)

    def add(self, round_: Round) -> None:
        """Let a round stand in line, and those no more that are over."""
        if len(self._rounds) >= self._most:
            self._forget_unwanted()
        self._rounds.append(round_)

    def strike_out(self, release: Round) -> bool:
        """Take out what a released lease asked for; True if nothing of it ever left us."""
        token, asked = release.command.token, list[Round]()
        if release.command.verb is Verb.RELEASE:
            asked = [each for each in self._rounds if each.command.token == token]
        for other in asked:
            self._rounds.remove(other)
        first = any(isinstance(each.command, Command) and each.command.is_first for each in asked)
        return first and not any(each.may_have_reached(self._node) for each in asked)

    def wanted(self) -> Iterator[Round]:
        """Take out one after the other, in order, what is not over yet."""
        while self._rounds:
            round_ = self._rounds.popleft()
            if round_.wanted:
                yield round_

    def fail(self, vote: Vote) -> None:
        """Count this as the node's vote in every round, and keep those that must be heard."""
        for round_ in list(self._rounds):
            round_.count(self._node, vote)
        self._forget_unwanted()

    def clear(self) -> None:
        """Let nothing stand in line."""
        self._rounds.clear()

    def _forget_unwanted(self) -> None:
        wanted = [round_ for round_ in self._rounds if round_.wanted]
        self._rounds.clear()
        self._rounds.extend(wanted)
