"""The view for terminals: a live picture, drawn with rich."""

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .plain import shortened
from .plot import LOCK
from .scene import Actor, Scene, State, Tone
from .verdict import Verdict
from .words import count

_FRAME = 1 / 12
"""Seconds between pictures: smooth to the eye, and light on the machine that is being watched."""

_SHADES = " ▁▂▃▄▅▆▇█"
_WIDEST, _NARROWEST = 72, 8
_COLUMNS_BESIDES = 50
"""What the other columns of the table take."""

_LINES_BESIDES = 10
"""What is always there: title, lock line, table head, blank lines, cursor."""

_LOOKS = {
    State.STARTING: ("·", "dim"),
    State.WAITING: ("○", "yellow"),
    State.HOLDING: ("●", "bold green"),
    State.RESTING: ("·", "dim"),
    State.DEAD: ("✖", "bold red"),
    State.HOME: ("·", "dim"),
}
_TONES = {
    Tone.PLAIN: ("·", ""),
    Tone.BLOW: ("✖", "red"),
    Tone.RECOVERY: ("✔", "green"),
    Tone.BREACH: ("‼", "bold red"),
}


class Screen:
    """Draws the scene over and over in the same place."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, scene: Scene, now: float) -> None:
        """Draw, unless the last picture is fresh.

        Calls come with the news, and most news are of somebody who has left; a picture of
        somebody inside is worth another moment's wait.
        """
        age = now - self._drawn
        if scene.ended or age >= 2 * _FRAME or (age >= _FRAME and scene.holders):
            self._drawn = now
            size = self._console.size
            self._live.update(picture(scene, now, size.width, size.height), refresh=True)

    def conclude(self, verdict: Verdict) -> None:
        """Print the verdict below the last picture."""
        self._live.stop()
        self._console.print(summary(verdict))


def picture(scene: Scene, now: float, width: int, height: int) -> RenderableType:
    """Return the whole picture, for a terminal of that size."""
    plot = scene.plot
    columns = max(_NARROWEST, min(width - _COLUMNS_BESIDES, _WIDEST))
    lines = max(3, height - _LINES_BESIDES - plot.nodes - plot.workers)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("", min_width=9, no_wrap=True)
    table.add_column("", width=24, no_wrap=True)
    table.add_column("done", width=5, justify="right")
    table.add_column(_ruler(scene, now, columns), width=columns, no_wrap=True)
    for node in range(1, plot.nodes + 1):
        table.add_row(f"node {node}", *_node(scene, node, now, columns))
    table.add_row()
    for actor in scene.actors.values():
        table.add_row(f"worker {actor.number}", *_actor(scene, actor, now, columns))
    return Group(_title(scene, now), Text(), table, Text(), _lock(scene, now), *_news(scene, lines))


def _title(scene: Scene, now: float) -> Text:
    plot = scene.plot
    text = Text(no_wrap=True, overflow="ellipsis").append("holdfast", "bold cyan")
    lock = f"one lock on {plot.nodes} nodes" if plot.locked else "no lock"
    text.append(f"  {count(plot.workers, 'worker')}, {lock}", "dim")
    text.append("   counter ", "dim").append(str(scene.counter), "bold")
    after = 0.0 if scene.unready else min(now - scene.started, plot.seconds)
    return text.append(f"   {after:.1f} of {plot.seconds:g} s", "dim")


def _ruler(scene: Scene, now: float, columns: int) -> Text:
    """Return the progress bar: what has passed is bright."""
    passed = 0 if scene.unready else _column(scene, now, columns) + 1
    return Text("━" * passed, "cyan").append("━" * (columns - passed), "bright_black")


def _node(scene: Scene, node: int, now: float, columns: int) -> tuple[Text, str, Text]:
    down = scene.nodes_down.get(node)
    if down is None:
        drawn = 0 if scene.unready else _column(scene, now, columns) + 1
        return Text("● up", "green"), "", Text("─" * drawn, "green")
    row = Text("─" * _column(scene, down, columns), "green").append("✖", "bold red")
    return Text("✖ killed", "bold red"), "", row


def _actor(scene: Scene, actor: Actor, now: float, columns: int) -> tuple[Text, str, Text]:
    sign, style = _LOOKS[actor.state]
    state = Text(f"{sign} {_doing(actor, now)}", style)
    shares = actor.timeline.shares(columns)
    row = Text("".join(_shade(share) for share in shares), "green")
    return state, str(actor.done), row if actor.died is None else _obituary(scene, actor, row, now)


def _doing(actor: Actor, now: float) -> str:
    """Say what a worker is doing, with what matters about it."""
    stay = actor.stay
    match actor.state:
        case State.HOLDING if stay is not None:
            return f"holding  {stay.read} → {stay.read + 1}"
        case State.WAITING if now - actor.since >= 0.1:
            return f"waiting  {now - actor.since:.1f} s"
        case State.DEAD if stay is not None:
            return "killed while holding"
        case state:
            return state.value


def _obituary(scene: Scene, actor: Actor, row: Text, now: float) -> Text:
    """Mark where a worker died, and how long its lease went on without it."""
    columns = len(row)
    died = _column(scene, actor.died or now, columns)
    until = min(now, actor.stay.until) if actor.stay else now
    lapsing = max(_column(scene, until, columns) - died, 0)
    return row[:died].append("✖", "bold red").append("░" * lapsing, "red")


def _shade(share: float) -> str:
    """Return a block for a share, full from a half on; whoever held at all is seen."""
    return _SHADES[min(int(share * 16) + (share > 0), 8)]


def _column(scene: Scene, at: float, columns: int) -> int:
    timeline = next(iter(scene.actors.values())).timeline
    return timeline.column(at - scene.started, columns)


def _lock(scene: Scene, now: float) -> Text:
    """Say who has the lock: the one line to watch."""
    text = Text(no_wrap=True, overflow="ellipsis").append(f"lock {LOCK}  ", "dim")
    holders = [f"worker {actor.number}" for actor in scene.holders]
    orphan = scene.orphan(now)
    if orphan is not None and orphan.stay is not None and not holders:
        left = orphan.stay.until - now
        owner = f"✖ held by worker {orphan.number}, which is dead"
        return text.append(owner, "bold red").append(f": lease ends in {left:.1f} s", "red")
    if len(holders) > 1:
        return text.append(f"‼ {', '.join(holders)} at once", "bold red")
    if holders:
        return text.append(f"● held by {holders[0]}", "bold green")
    return text.append("· free", "dim")


def _news(scene: Scene, lines: int) -> list[Text]:
    return [
        Text(f"{each.after:5.2f} s  ", "dim", no_wrap=True, overflow="ellipsis").append(
            " ".join((_TONES[each.tone][0], each.text)), _TONES[each.tone][1]
        )
        for each in scene.happenings[-lines:]
    ]


def summary(verdict: Verdict) -> RenderableType:
    """Return the verdict as it is printed below the last picture."""
    sign, style = ("✔", "bold green") if verdict.held else ("✖", "bold red")
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    facts.add_column(style="dim")
    for label, text in verdict.facts:
        facts.add_row(label, text)
    breaches = [Text(f"  ‼ {each}", "red") for each in shortened(verdict.breaches)]
    return Group(Text(), Text(f"{sign} {verdict.headline}", style), facts, *breaches)
