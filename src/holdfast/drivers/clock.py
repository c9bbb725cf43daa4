"""Our own clock: seconds since some fixed moment, never set, never stopped.

Boot time goes on while the machine is suspended; plain monotonic time does not, and a lease that
ran out during the nap would look valid. Where there is no boot clock, monotonic must do.
"""

import time

if hasattr(time, "CLOCK_BOOTTIME"):

    def now() -> float:
        """Return the time on our own clock, in seconds."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:  # pragma: no cover  # not Linux
    now = time.monotonic
