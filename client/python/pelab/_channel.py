"""Connections to a coordinator.

The rules are those of the command line's --tls, --tls-ca, --tls-cert, --tls-key, --token-file and
--insecure.
"""

from __future__ import annotations

import ipaddress
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from pelab.errors import InvalidInput, NoCoordinator, NotFound

MAX_MESSAGE_BYTES = 16 << 20
_MAX_SOCKET_PATH = 107
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 250),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]


def _check_address(address: str) -> bool:
    """Whether the address is local, so that no other machine can reach it."""
    def bad(why: str) -> InvalidInput:
        return InvalidInput(f'invalid address "{address}": {why}; allowed: unix:PATH or HOST:PORT')
    if address.startswith("unix:"):
        path = address[len("unix:"):].encode()
        if not path:
            raise bad("the path of the socket is empty")
        if len(path) > _MAX_SOCKET_PATH:
            raise bad(f"the path has {len(path)} bytes and a socket's at most {_MAX_SOCKET_PATH}")
        return True
    host, colon, port = address.rpartition(":")
    if not colon:
        raise bad("there is no port")
    if not re.fullmatch(r"\d{1,5}", port) or not 1 <= int(port) <= 65535:
        raise bad(f'port "{port}" is not a number from 1 to 65535')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif not re.fullmatch(r"[A-Za-z0-9._-]{1,253}", host):
        raise bad(f'"{host}" is not a host name; an IPv6 address needs brackets, as in [::1]:7470')
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(path: str | os.PathLike[str], what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {what} {os.fspath(path)}: {error.strerror}") from None


def _token(token_file: str | os.PathLike[str] | None) -> str:
    if token_file is not None:
        token, source = (_read(token_file, "the token file").decode(errors="replace").rstrip(),
                         os.fspath(token_file))
    else:
        token, source = os.environ.get("PELAB_TOKEN", ""), "PELAB_TOKEN"
        if not token:
            return ""
    if not re.fullmatch(r"[!-~]{16,4096}", token):
        raise InvalidInput(f"invalid token in {source} ({len(token)} characters); allowed: 16 to "
                           "4096 printable characters without spaces, on one line")
    return token


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _SendToken(grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
                 grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
                 grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
                 grpc.StreamStreamClientInterceptor):  # type: ignore[misc]
    """Puts the token into each call: gRPC's own way refuses connections without TLS, also those
    that only this machine can make."""

    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    def _add(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or []), self._header]
        return continuation(
            _Details(details.method, details.timeout, metadata, details.credentials,
                     details.wait_for_ready, details.compression), request)

    intercept_unary_unary = _add
    intercept_unary_stream = _add
    intercept_stream_unary = _add
    intercept_stream_stream = _add


@dataclass(frozen=True)
class Security:
    """How a client shows itself, and whom it trusts."""

    tls: bool = False
    tls_ca: str | os.PathLike[str] | None = None
    tls_cert: str | os.PathLike[str] | None = None
    tls_key: str | os.PathLike[str] | None = None
    token_file: str | os.PathLike[str] | None = None
    insecure: bool = False


def _tls_credentials(security: Security) -> grpc.ChannelCredentials:
    def content(path: str | os.PathLike[str] | None, what: str) -> bytes | None:
        return None if path is None else _read(path, what)
    return grpc.ssl_channel_credentials(
        root_certificates=content(security.tls_ca, "the authorities' file"),
        private_key=content(security.tls_key, "the key's file"),
        certificate_chain=content(security.tls_cert, "the certificate's file"))


def open_channel(address: str, security: Security, timeout: float) -> grpc.Channel:
    """Returns a connected channel. NoCoordinator on a refusal, or after `timeout` seconds."""
    local = _check_address(address)
    if (security.tls_cert is None) != (security.tls_key is None):
        raise InvalidInput("tls_cert and tls_key are only allowed together")
    asked = security.tls or security.tls_ca is not None or security.tls_cert is not None
    if asked and security.insecure:
        raise InvalidInput("insecure and tls contradict each other")
    tls = asked or not (local or security.insecure)
    if not tls and not local and security.token_file is not None:
        raise InvalidInput(
            "token_file needs tls: over a plain connection anybody could read the token")
    connection = (grpc.secure_channel(address, _tls_credentials(security), _OPTIONS) if tls else
                  grpc.insecure_channel(address, _OPTIONS))
    try:
        token = _token(security.token_file) if tls or local else ""
        _await_connection(connection, address, timeout)
    except BaseException:
        connection.close()
        raise
    return grpc.intercept_channel(connection, _SendToken(token)) if token else connection


def _await_connection(channel: grpc.Channel, address: str, timeout: float) -> None:
    decided = threading.Event()
    states: list[grpc.ChannelConnectivity] = []

    def on_change(state: grpc.ChannelConnectivity) -> None:
        states.append(state)
        if state in (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE,
                     grpc.ChannelConnectivity.SHUTDOWN):
            decided.set()

    channel.subscribe(on_change, try_to_connect=True)
    came = decided.wait(timeout)
    channel.unsubscribe(on_change)
    if not came or grpc.ChannelConnectivity.READY not in states:
        raise NoCoordinator(f"no coordinator at {address}")
