"""What it costs to keep many leases: python -m bench.keeping LEASES TTL URL...

Acquires that many, waits until each has been renewed once, and then measures the processor time of
this process while it does nothing else, for as long as all of them take to be renewed again. Prints
the share of one core, and how many renewals that was for.
"""

import asyncio
import json
import sys
import time

import holdfast.aio


def main() -> None:
    """Measure, and print JSON."""
    leases, ttl, urls = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    sys.stdout.write(json.dumps(asyncio.run(_measure(leases, ttl, urls))) + "\n")


async def _measure(leases: int, ttl: float, urls: list[str]) -> dict[str, float]:
    client = holdfast.aio.connect(*urls, ttl=ttl)
    held = [
        lease
        for start in range(0, leases, 500)
        for lease in await asyncio.gather(
            *(client.lock(f"kept:{number}").acquire() for number in range(start, start + 500))
        )
    ]
    while client.stats().renewals < leases:
        await asyncio.sleep(ttl / 100)
    before, cpu, began = client.stats(), time.process_time(), time.perf_counter()
    while (after := client.stats()).renewals < before.renewals + leases:
        await asyncio.sleep(ttl / 10)
    seconds = time.perf_counter() - began
    share = (time.process_time() - cpu) / seconds
    for start in range(0, leases, 500):
        await asyncio.gather(*(lease.release() for lease in held[start : start + 500]))
    await client.close()
    return {
        "percent_of_a_core": 100 * share,
        "renewals_per_second": (after.renewals - before.renewals) / seconds,
        "lost": after.lost,
        "lateness_p99": after.lateness_p99,
    }


if __name__ == "__main__":
    main()
