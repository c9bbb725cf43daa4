"""Our own clock: seconds since some fixed moment, never set, never stopped.

Boot time goes on while the machine is suspended; plain monotonic time does not, and a lease that
ran out during the nap would look valid. Where there is no boot clock, monotonic must do.
"""

import time
from functools import partial

NAP = 1.0
"""Seconds. The system's waits stop while the machine is suspended, and this clock does not: whoever
waits for it to show something looks at least this often."""

if hasattr(time, "CLOCK_BOOTTIME"):
    now = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    """Return the time on our own clock, in seconds."""

else:  # pragma: no cover  # not Linux
    now = time.monotonic  # type: ignore[assignment]  # another callable that returns seconds
