"""Look at the embedded server or stop it: python -m holdfast.embedded status|stop."""

import argparse
import sys

from ..errors import EmbeddedServerError
from .shared import SharedServer


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if it did, 1 if no server is running, 2 if something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.embedded",
        description="The embedded Valkey server: what holdfast.connect() uses when given no node.",
        epilog="It runs in $HOLDFAST_RUNTIME_DIR, else in a directory of yours below /var/tmp."
        " exit codes: 0 done, 1 not running, 2 trouble",
    )
    parser.add_argument("what", choices=["status", "stop"], help="say what runs, or end it")
    what = parser.parse_args(arguments).what
    server = SharedServer()
    try:
        return _status(server) if what == "status" else _stop(server)
    except EmbeddedServerError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


def _status(server: SharedServer) -> int:
    status = server.status()
    if status is None:
        sys.stdout.write(f"not running ({server.directory})\n")
        return 1
    sys.stdout.write(
        f"running: Valkey {status.version}, pid {status.pid}, up {status.uptime_s} s\n"
        f"node: {server.url}\nlog: {server.log}\n"
    )
    return 0


def _stop(server: SharedServer) -> int:
    if not server.stop():
        sys.stdout.write(f"not running ({server.directory})\n")
        return 1
    sys.stdout.write(f"stopped; its data stays in {server.directory}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
