"""Numbers with their nouns, as a reader expects them."""


def count(number: int, one: str, many: str = "") -> str:
    """Return "1 worker" or "6 workers"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
