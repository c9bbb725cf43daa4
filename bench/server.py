"""What scripts cost a server: microseconds per call, from its own INFO commandstats."""

from collections.abc import Iterator

import redis

from holdfast.core.effects import Command, Verb
from holdfast.core.guard import NO_GUARD, Guard
from holdfast.wire.commands import pack

from .dial import dial
from .floor import ENDING, MAX_TTL_MS, TTL_MS, release, request, teach

CALLS = 2000
"""Per script; all of them are written at once, so that the server does nothing else."""


def script_costs(url: str) -> Iterator[tuple[str, float]]:
    """Measure every script of a lock, without and with the guard, and a plain SET beside them."""
    teach([url])
    admin = redis.Redis.from_url(url)
    names = [(f"cost:{number}", f"{number:040x}") for number in range(CALLS)]
    yield "SET NX PX, plain", _plain(admin, names)
    for guard, words in ((NO_GUARD, ""), (Guard(MAX_TTL_MS), ", guarded")):
        asks = [request(name, token, guard) for name, token in names]
        yield f"request{words}", _cost(url, admin, asks)
        renewals = [
            pack(Command(Verb.RENEW, name, token, TTL_MS, 0, guard)) + ENDING
            for name, token in names
        ]
        yield f"renew{words}", _cost(url, admin, renewals)
        releases = [release(name, token) for name, token in names]
        yield f"release{words}", _cost(url, admin, releases)
    admin.close()


def _plain(admin: redis.Redis, names: list[tuple[str, str]]) -> float:
    admin.config_resetstat()
    pipe = admin.pipeline(transaction=False)
    for name, token in names:
        pipe.set(name, token, nx=True, px=TTL_MS)
    pipe.execute()
    cost = _spent(admin, "set")
    admin.delete(*(name for name, _ in names))
    return cost


def _cost(url: str, admin: redis.Redis, packed: list[bytes]) -> float:
    admin.config_resetstat()
    with dial(url) as sock:
        sock.sendall(b"".join(packed))
        seen = 0
        while seen < len(packed):  # every reply is an array of numbers
            seen += sock.recv(1 << 20).count(b"*")
    return _spent(admin, "evalsha")


def _spent(admin: redis.Redis, command: str) -> float:
    stats: dict[str, dict[str, float]] = admin.info("commandstats")
    return float(stats[f"cmdstat_{command}"]["usec_per_call"])
