"""What should come of a comparison: a ratio, and the bound that it should keep."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A ratio that should be reached: what it says, what came out, and the bound."""

    says: str
    value: float
    bound: float
    at_most: bool

    @property
    def met(self) -> bool:
        """True if the bound is kept; what could not be measured (nan) keeps none."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound


def at_most(says: str, value: float, bound: float) -> Target:
    """Return a target that should not be passed."""
    return Target(says, value, bound, at_most=True)


def at_least(says: str, value: float, bound: float) -> Target:
    """Return a target that should be passed."""
    return Target(says, value, bound, at_most=False)
