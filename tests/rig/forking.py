"""Doing something in a forked child."""

import os
import traceback
from collections.abc import Callable


def fork(act: Callable[[], None]) -> int:
    """Begin something in a forked child; returns its process id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:  # noqa: BLE001  # a child must end here, whatever happens
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def see_it_end(pid: int) -> None:
    """Wait for a forked child, and fail if it did."""
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def in_child(act: Callable[[], None]) -> None:
    """Run something in a forked child, and fail if it does."""
    see_it_end(fork(act))
