"""How a world ends that breaks a law."""


class Broken(AssertionError):
    """A law was broken; the world stops here."""
