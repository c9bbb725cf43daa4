"""A raw socket to a node, for those that speak to it without a client."""

import socket
from urllib.parse import urlsplit


def dial(url: str) -> socket.socket:
    """Connect to `redis://host:port` or `unix://path`, and no more."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(parts.path)
        return sock
    sock = socket.create_connection((parts.hostname, parts.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
