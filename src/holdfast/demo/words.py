"""Numbers with their nouns, as a reader expects them."""

from collections.abc import Sequence


def count(number: int, one: str, many: str = "") -> str:
    """Return "1 worker" or "6 workers"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def queue(workers: Sequence[int]) -> str:
    """Return "worker 3, then 5, 1", or "nobody"."""
    if not workers:
        return "nobody"
    first, *others = [str(worker) for worker in workers]
    return f"worker {first}" + (f", then {', '.join(others)}" if others else "")
