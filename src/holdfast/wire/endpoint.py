"""Where a node is and how to log in. redis-py reads URLs, TLS options and credentials for us.

What we take from redis-py is its *configuration*: a connection object of it is made from a URL or
copied from an existing client, looked at, and never connected.
"""

import os
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection, parse_url
from redis.exceptions import RedisError

from ..errors import BadInput

_SCHEMES = {
    "redis": "redis",
    "rediss": "rediss",
    "unix": "unix",
    "redis+unix": "unix",
    "valkey": "redis",
    "valkeys": "rediss",
    "valkey+unix": "unix",
}

_POOL_OPTIONS = {"max_connections", "timeout"}
"""What a URL may say to redis-py's pools, and no connection understands."""


class Credentials(Protocol):
    """What redis-py calls a credential provider."""

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return (password,) or (username, password)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One node's address and login."""

    host: str = "localhost"
    port: int = 6379
    path: str = ""
    db: int = 0
    protocol: int = 3
    client_name: str = ""
    credentials: Credentials | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def address(self) -> tuple[str, int] | str:
        """Where the server listens: the same address is the same server."""
        return self.path or (self.host, self.port)

    def login(self) -> tuple[str, ...]:
        """Return what AUTH should be given, or nothing."""
        return tuple(self.credentials.get_credentials()) if self.credentials else ()

    def name(self) -> str:
        """Name our connections, so that CLIENT LIST tells whose they are."""
        if self.client_name:
            return self.client_name
        host = "".join(char for char in socket.gethostname() if char.isalnum() or char in "-_.")
        return f"holdfast@{host}:{os.getpid()}"

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}" + (f"?db={self.db}" if self.db else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "rediss" if self.tls else "redis"
        return f"{scheme}://{host}:{self.port}" + (f"/{self.db}" if self.db else "")


def read(node: Any) -> Endpoint:
    """Understand a URL or an existing redis-py or valkey-py client, sync or async."""
    if isinstance(node, str):
        return _from_url(node)
    pool = getattr(node, "connection_pool", None)
    kwargs = getattr(pool, "connection_kwargs", None)
    if pool is None or not isinstance(kwargs, dict):
        raise BadInput(
            f"a node is a URL or a redis-py or valkey-py client, not {type(node).__name__}"
        )
    if hasattr(pool, "sentinel_manager"):
        raise BadInput("Sentinel-managed clients are not understood yet: give the node's own URL")
    return _from_kwargs(type_of(pool.connection_class), kwargs, "the given client")


def type_of(connection_class: type) -> type[Connection | UnixDomainSocketConnection]:
    """Return redis-py's own class for whatever connection class a client uses."""
    names = {base.__name__ for base in connection_class.__mro__}
    if "UnixDomainSocketConnection" in names:
        return UnixDomainSocketConnection
    return SSLConnection if "SSLConnection" in names else Connection


def _from_url(url: str) -> Endpoint:
    shown = f"node URL {_masked(url)!r}"
    scheme, found, rest = url.strip().partition("://")
    if not found:
        raise BadInput(f"{shown} has no scheme; hint: redis://{_masked(url)}")
    if scheme.lower() not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise BadInput(f"{shown} has an unknown scheme; known are {known}")
    scheme = _SCHEMES[scheme.lower()]
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        kwargs = dict(parse_url(f"{scheme}://{rest}"))  # type: ignore[no-untyped-call]  # redis-py
    except ValueError as error:
        raise BadInput(f"{shown} is malformed{_why(rest, error)}") from None
    if scheme == "unix":
        if not kwargs.get("path"):
            raise BadInput(f"{shown} names no socket file")
    elif parts.path.strip("/") and not parts.path.strip("/").isdigit():
        raise BadInput(f"{shown}: the database is not a number{_why(rest, parts.path)}")
    kind = kwargs.pop("connection_class", Connection)
    try:
        kind(**{key: value for key, value in kwargs.items() if key not in _POOL_OPTIONS})
    except (TypeError, ValueError, RedisError) as error:
        raise BadInput(f"{shown} is not understood: {error}") from None
    return _from_kwargs(kind, kwargs, shown)


def _from_kwargs(
    kind: type[Connection | UnixDomainSocketConnection], kwargs: dict[str, Any], shown: str
) -> Endpoint:
    wanted = ("host", "port", "path", "db", "username", "password", "client_name", "protocol")
    settings = {key: kwargs[key] for key in wanted if kwargs.get(key) is not None}
    settings |= {key: value for key, value in kwargs.items() if key.startswith("ssl_")}
    if kind is UnixDomainSocketConnection:
        settings = {key: value for key, value in settings.items() if key not in ("host", "port")}
    try:
        made: Any = kind(**settings)
        tls = _tls(made) if isinstance(made, SSLConnection) else None
    except (TypeError, ValueError, RedisError, OSError) as error:
        raise BadInput(f"{shown} is not understood: {error}") from None
    host, path = getattr(made, "host", ""), getattr(made, "path", "")
    if "\0" in f"{host}{path}":
        raise BadInput(f"{shown} has a zero byte in its address")
    try:
        db, port = int(made.db or 0), int(getattr(made, "port", 0) or 0)
    except (TypeError, ValueError):
        raise BadInput(f"{shown}: the database and the port are numbers") from None
    if db < 0:
        raise BadInput(f"{shown}: the database {db} is negative")
    return Endpoint(
        host=host,
        port=port,
        path=path,
        db=db,
        protocol=2 if str(kwargs.get("protocol")) == "2" else 3,
        client_name=made.client_name or "",
        credentials=kwargs.get("credential_provider") or _login(made.username, made.password),
        tls=tls,
    )


@dataclass(frozen=True, slots=True)
class _Login:
    """A fixed user name and password."""

    words: tuple[str] | tuple[str, str] = field(repr=False)

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        return self.words


def _login(username: str | None, password: str | None) -> Credentials | None:
    if username:
        return _Login((username, password or ""))
    return _Login((password,)) if password else None


def _tls(made: SSLConnection) -> ssl.SSLContext:
    """Build the context that redis-py would build at its every connect, once."""
    if made.ssl_validate_ocsp or made.ssl_validate_ocsp_stapled:
        raise BadInput("OCSP validation is not supported")
    context = ssl.create_default_context()
    context.check_hostname = made.check_hostname
    context.verify_mode = made.cert_reqs
    for flag in getattr(made, "ssl_include_verify_flags", None) or ():
        context.verify_flags |= flag
    for flag in getattr(made, "ssl_exclude_verify_flags", None) or ():
        context.verify_flags &= ~flag
    if made.certfile or made.keyfile:
        context.load_cert_chain(made.certfile, made.keyfile, made.certificate_password)
    if made.ca_certs or made.ca_path or made.ca_data:
        context.load_verify_locations(made.ca_certs, made.ca_path, made.ca_data)
    if made.ssl_min_version is not None:
        context.minimum_version = made.ssl_min_version
    if made.ssl_ciphers:
        context.set_ciphers(made.ssl_ciphers)
    return context


def _masked(url: str) -> str:
    """Hide the credentials of a URL, however malformed it is."""
    scheme, found, rest = url.partition("://")
    if not found:
        scheme, rest = "", url
    _, at, place = rest.rpartition("@")
    return f"{scheme}{found}{'***@' if at else ''}{place.partition('?')[0]}"


def _why(rest: str, words: object) -> str:
    """Say what is wrong with a URL, unless the words may be a piece of its password."""
    if "@" in rest:
        return '; hint: in a password, write "/", "?", "#" and "@" as %2F, %3F, %23 and %40'
    return f": {words}"
