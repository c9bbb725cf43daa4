"""The picture: the whole scene at one moment, for a terminal of some size."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .actor import Actor, State
from .node import Node, NodeState
from .plot import LOCK
from .scene import Scene, Tone
from .words import count, queue

_SHADES = " ▁▂▃▄▅▆▇█"
_WIDEST, _NARROWEST = 72, 8
_COLUMNS_BESIDES = 50
"""What the other columns of the table take."""

_LINES_BESIDES = 10
"""What is always there: title, table head, lock and who is in line, blank lines, cursor."""

_LOCK = f"lock {LOCK}"

_LOOKS = {
    State.STARTING: ("·", "dim"),
    State.WAITING: ("○", "yellow"),
    State.HOLDING: ("●", "bold green"),
    State.RESTING: ("·", "dim"),
    State.DEAD: ("✖", "bold red"),
    State.HOME: ("·", "dim"),
}
_NODES = {
    NodeState.UP: ("●", "─", "green"),
    NodeState.KILLED: ("✖", " ", "bold red"),
    NodeState.STARTING: ("·", " ", "dim"),
    NodeState.ABSTAINING: ("◐", "┄", "yellow"),
}
"""A node's sign, what its row is drawn with, and the colour of both."""

_TONES = {
    Tone.PLAIN: ("·", ""),
    Tone.BLOW: ("✖", "red"),
    Tone.CAUTION: ("◐", "yellow"),
    Tone.RECOVERY: ("✔", "green"),
    Tone.BREACH: ("‼", "bold red"),
}


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
    for node in scene.nodes.values():
        table.add_row(f"node {node.number}", *_node(scene, node, now, columns))
    table.add_row()
    for actor in scene.actors.values():
        table.add_row(f"worker {actor.number}", *_actor(scene, actor, now, columns))
    lock = [_lock(scene, now), *([_line(scene)] if plot.locked else [])]
    return Group(_title(scene, now), Text(), table, Text(), *lock, *_news(scene, lines))


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


def _node(scene: Scene, node: Node, now: float, columns: int) -> tuple[Text, str, Text]:
    sign, _, style = _NODES[node.state]
    words = f"{sign} {node.state.value}"
    if node.state is NodeState.ABSTAINING:
        words += f"  {max(node.abstains_until - now, 0.0):.1f} s"
    return Text(words, style), "", _life(scene, node, now, columns)


def _life(scene: Scene, node: Node, now: float, columns: int) -> Text:
    """Return a node's row: what it has been until now, one after the other."""
    row = Text()
    ends = [_column(scene, at, columns) for _, at in node.turns]
    ends.append(0 if scene.unready else _column(scene, now, columns) + 1)
    states = [NodeState.UP, *(state for state, _ in node.turns)]
    for state, end in zip(states, ends, strict=True):
        sign, line, style = _NODES[state]
        if state is NodeState.KILLED:
            row.append(sign, style)  # however short it was
        row.append(line * (end - len(row)), style)
    return row


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
    text = Text(no_wrap=True, overflow="ellipsis").append(f"{_LOCK}  ", "dim")
    holders = [f"worker {actor.number}" for actor in scene.holders]
    orphan = scene.orphan(now)
    if orphan is not None and orphan.stay is not None and not holders:
        left = orphan.stay.until - now
        owner = f"✖ held by worker {orphan.number}, which is dead"
        return text.append(owner, "bold red").append(f": lease ends in {left:.1f} s", "red")
    if len(holders) > 1:
        return text.append(f"‼ {', '.join(holders)} at once", "bold red")
    if holders:
        stay = scene.holders[0].stay
        fence = f"  fence {stay.fence}" if stay and stay.fence is not None else ""
        return text.append(f"● held by {holders[0]}", "bold green").append(fence, "dim")
    return text.append("· free", "dim")


def _line(scene: Scene) -> Text:
    """Say who is next, and next to that."""
    text = Text(no_wrap=True, overflow="ellipsis").append(f"{'in line':<{len(_LOCK)}}  ", "dim")
    line = scene.line
    return text.append(
        f"{_LOOKS[State.WAITING][0] if line else '·'} {queue(line)}",
        _LOOKS[State.WAITING][1] if line else "dim",
    )


def _news(scene: Scene, lines: int) -> list[Text]:
    return [
        Text(f"{each.after:5.2f} s  ", "dim", no_wrap=True, overflow="ellipsis").append(
            " ".join((_TONES[each.tone][0], each.text)), _TONES[each.tone][1]
        )
        for each in scene.happenings[-lines:]
    ]
