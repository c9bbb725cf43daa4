"""Simulate many worlds, or one: python -m holdfast.testing --seeds 1000 | --seed 42 --trace."""

import argparse
import os
import sys
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .simulation import Run, simulate

_CHUNK = 20


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds; 0 if all laws were kept, 1 if one was broken, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    try:
        if options.seed is not None:
            return _one(options.seed, guard=options.guard, trace=options.trace)
        return _many(range(options.first, options.first + options.seeds), options, console)
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing",
        description="Run the shipped flows and scripts in simulated worlds full of faults,"
        " and check the laws at every step.",
        epilog="exit codes: 0 all laws kept, 1 a law was broken, 130 interrupted",
    )
    parser.add_argument("--seeds", type=_count, default=1000, help="how many worlds (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="run this one seed only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every event")
    parser.add_argument(
        "--no-guard",
        dest="guard",
        action="store_false",
        help="let nodes that have forgotten grant again at once: a known hole, which is found",
    )
    parser.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="processes")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _one(seed: int, *, guard: bool, trace: bool) -> int:
    run = simulate(seed, guard=guard, tracing=trace)
    for line in run.trace:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"seed {seed}: {run.scenario}\n{_verdict(run)}\n")
    return 1 if run.broken else 0


def _verdict(run: Run) -> str:
    if run.broken:
        return f"BROKEN {run.broken}"
    return f"all laws kept, {run.acquired} acquisitions, {run.renewed} renewals"


def _many(seeds: range, options: argparse.Namespace, console: Console) -> int:
    acquired, renewed, failure = 0, 0, None
    with (
        Progress(
            TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        ) as progress,
        closing(_runs(seeds, options.jobs, guard=options.guard)) as runs,
    ):  # fmt: skip
        task = progress.add_task("", total=len(seeds))
        for run in runs:
            progress.advance(task)
            acquired += run.acquired
            renewed += run.renewed
            if run.broken:
                failure = run
                break
    if failure is None:
        done = f"{len(seeds)} seeds, {acquired} acquisitions, {renewed} renewals"
        sys.stdout.write(f"{done}: all laws kept\n")
        return 0
    flag = "" if options.guard else " --no-guard"
    sys.stdout.write(
        f"seed {failure.seed}: {failure.scenario}\n{_verdict(failure)}\n"
        f"replay: make sim SEED={failure.seed} SIM_ARGS='--trace{flag}'\n"
    )
    return 1


def _runs(seeds: range, jobs: int, *, guard: bool) -> Generator[Run, None, None]:
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    if jobs == 1 or len(chunks) == 1:
        for chunk in chunks:
            yield from _chunk(chunk, guard)
        return
    pool = ProcessPoolExecutor(min(jobs, len(chunks)))
    try:
        for done in pool.map(_chunk, chunks, [guard] * len(chunks)):
            yield from done
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _chunk(seeds: range, guard: bool) -> list[Run]:
    return [simulate(seed, guard=guard) for seed in seeds]


if __name__ == "__main__":
    sys.exit(main())
