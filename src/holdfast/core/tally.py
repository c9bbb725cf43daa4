"""Counting the votes of one round.

A tally is decided as early as it can be: WON when a quorum has granted, LOST when a quorum can no
longer be reached; a `thorough` one is LOST only when every node has answered, but for those that
are known to be silent. Until then it is PENDING, also after the deadline: then nobody knows.
"""

from collections.abc import Collection

from .votes import Answer, Verdict, Vote


def quorum_of(nodes: int) -> int:
    """Return how many of `nodes` must grant. Two quorums always share a node, for even N too."""
    return nodes // 2 + 1


_GAPS = (Answer.MISSING, Answer.DOUBTFUL, Answer.ABSTAINED)

_FOR_A_WHILE = (
    Answer.HELD, Answer.QUEUED, Answer.OUTRANKED, Answer.MISSING, Answer.OUTBID, Answer.ABSTAINED,
)  # fmt: skip


class Tally:
    """The votes of one round, by node."""

    __slots__ = (
        "_unheard", "against", "failed", "gaps", "granted", "late_fence", "marks", "nodes",
        "quorum", "silent", "thorough", "verdict", "votes",
    )  # fmt: skip

    def __init__(
        self,
        nodes: int,
        quorum: int = 0,
        *,
        thorough: bool = False,
        silent: Collection[int] = (),
    ) -> None:
        """Count the votes of so many nodes; `quorum` spares who knows it from counting again.

        `silent`: nodes that a thorough one does not wait for, fewer than would decide it.
        """
        self.nodes = nodes
        self.quorum = quorum or quorum_of(nodes)
        self.thorough = thorough
        self.silent = silent if thorough and len(silent) <= nodes - self.quorum else ()
        self._unheard = nodes - len(self.silent)
        """How many others have not answered yet."""
        self.late_fence = False
        """True if a quorum has granted the lock, and these votes are about its fence."""
        self.votes: list[Vote | None] = [None] * nodes
        self.granted = 0
        self.against = 0
        """Nodes that can no longer grant: refused, in line, missing, abstaining or failed."""
        self.failed = 0
        """Those of them that say nothing about who holds the lock: failed, or abstaining."""
        self.gaps = False
        """True if a node said that it does not have what it should, perhaps after the verdict."""
        self.marks: list[int] = []
        """Marks that stand in the way of the fence that was proposed."""
        self.verdict = Verdict.PENDING

    def add(self, node: int, vote: Vote) -> None:
        """Count a node's vote. Its first one counts, whatever else arrives (L3)."""
        if self.votes[node] is not None:
            return
        self.votes[node] = vote
        if vote.answer is Answer.GRANTED or vote.answer is Answer.RESERVED:
            self.granted += 1
            if vote.mark and vote.answer is Answer.GRANTED:
                self.marks.append(vote.mark)
            if self.granted == self.quorum:
                self.verdict = Verdict.WON
        else:
            self.against += 1
            if vote.answer is Answer.OUTBID:
                self.marks.append(vote.mark)
            if vote.answer is Answer.FAILED or vote.answer is Answer.ABSTAINED:
                self.failed += 1
            self.note_late(vote)
            if self.against > self.nodes - self.quorum and not self.thorough:
                self.verdict = Verdict.LOST
        if node not in self.silent:
            self._unheard -= 1
            if not self._unheard and self.verdict is Verdict.PENDING:
                self.verdict = Verdict.LOST

    def note_late(self, vote: Vote) -> None:
        """Take note of a vote that may have come too late to count."""
        if vote.answer in _GAPS:
            self.gaps = True

    @property
    def accepted(self) -> bool:
        """True if a quorum has granted and accepted the proposed fence."""
        return self.granted - len(self.marks) >= self.quorum

    @property
    def abstained(self) -> bool:
        """True if a quorum would be there, but for nodes that abstain."""
        away = self.count(Answer.ABSTAINED)
        return away > 0 and self.failed + self._silent - away <= self.nodes - self.quorum

    @property
    def outbid(self) -> bool:
        """True if nobody else has the lock, but no fence could be agreed on."""
        return any(vote is not None and vote.answer is Answer.OUTBID for vote in self.votes)

    @property
    def cut_off(self) -> bool:
        """True if failure, abstention and silence alone stand in the way of a quorum: nobody knows.

        Silence counts against a node only once the round is over without a verdict; in a round
        that was decided early, those that had not answered yet were simply not waited for. A
        thorough one is not decided early: who is missing there is known to be silent.
        """
        return self.failed + self._silent > self.nodes - self.quorum

    @property
    def _silent(self) -> int:
        early = self.verdict is Verdict.WON or (self.verdict is Verdict.LOST and not self.thorough)
        return 0 if early else self.votes.count(None)

    @property
    def unanswered(self) -> list[int]:
        """The nodes that have not answered."""
        return [node for node, vote in enumerate(self.votes) if vote is None]

    @property
    def denied(self) -> bool:
        """True if so many nodes said "not yours" that no quorum can say "yours"."""
        return self.against - self.failed > self.nodes - self.quorum

    @property
    def hopeless(self) -> bool:
        """True if a quorum is kept away by conditions that asking again does not change."""
        lasting = sum(
            vote is not None and vote.failure is not None and vote.failure.condition.lasting
            for vote in self.votes
        )
        return lasting > self.nodes - self.quorum

    def count(self, answer: Answer) -> int:
        """Return how many nodes said that."""
        return sum(vote is not None and vote.answer is answer for vote in self.votes)

    @property
    def answers(self) -> frozenset[Answer]:
        """The different things that were said."""
        return frozenset(vote.answer for vote in self.votes if vote is not None)

    def remaining(self) -> float | None:
        """Return in how many seconds enough nodes may be free again, None if nobody can tell.

        Those that granted or failed may be free at once; of those that refused or abstain, the
        soonest ones that make up a quorum decide.
        """
        away = sum(vote is not None and vote.answer in _FOR_A_WHILE for vote in self.votes)
        missing = self.quorum - (self.nodes - away)
        if missing <= 0:
            return 0.0
        held = sorted(
            vote.remaining_ms
            for vote in self.votes
            if vote is not None and vote.remaining_ms is not None and vote.answer in _FOR_A_WHILE
        )
        return held[missing - 1] / 1000 if len(held) >= missing else None
