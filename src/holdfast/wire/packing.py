"""Writing commands, by hiredis: the hot path of every round."""

from collections.abc import Callable
from typing import Any, cast

import hiredis

Words = tuple[bytes | str, ...]
"""No numbers: hiredis 3 crashes the process if a signal handler raises while it writes one."""

pack_words = cast("Callable[[Words], bytes]", cast(Any, hiredis).pack_command)
"""Write one command. hiredis takes a tuple of any length; its own annotation says one."""
