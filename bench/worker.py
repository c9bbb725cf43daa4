"""One contender in a process of its own: reads how many pairs to do, writes how long they took.

python -m bench.worker [--without-hiredis] [--tasks N] NAME URL...
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--without-hiredis", action="store_true")
    parser.add_argument("--tasks", type=int, default=0)
    parser.add_argument("name")
    parser.add_argument("urls", nargs="+")
    options = parser.parse_args()
    if options.without_hiredis:
        sys.modules["hiredis"] = None  # type: ignore[assignment]  # as if it were not installed
    if options.tasks:
        with asyncio.Runner() as runner:
            _serve(_many_tasks(runner, options))
    else:
        _serve(_one_thread(options))


def _one_thread(options: argparse.Namespace) -> Callable[[int], None]:
    from .contenders import BLOCKING

    pair = BLOCKING[options.name](options.urls)

    def run(pairs: int) -> None:
        for _ in range(pairs):
            pair()

    return run


def _many_tasks(runner: asyncio.Runner, options: argparse.Namespace) -> Callable[[int], None]:
    from .contenders import ASYNC, AsyncPair, share_out

    async def open_() -> AsyncPair:
        return await ASYNC[options.name](options.urls)

    pair = runner.run(open_())
    return lambda pairs: runner.run(share_out(pair, options.tasks, pairs))


def _serve(run: Callable[[int], None]) -> None:
    for line in sys.stdin:
        pairs = int(line)
        started = time.perf_counter()
        run(pairs)
        sys.stdout.write(f"{time.perf_counter() - started}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
