"""Connections to a coordinator.

The rules are those of the command line's --tls, --tls-ca, --token-file and --insecure.
"""

from __future__ import annotations

import ipaddress
import os
import re
import threading
from pathlib import Path

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
    ("grpc.min_reconnect_backoff_ms", 100),
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


def open_channel(address: str, *, tls: bool, tls_ca: str | os.PathLike[str] | None, token_file: str
                 | os.PathLike[str] | None, insecure: bool, timeout: float) -> grpc.Channel:
    """Returns a connected channel. NoCoordinator on a refusal, or after `timeout` seconds."""
    local = _check_address(address)
    asked = tls or tls_ca is not None
    if asked and insecure:
        raise InvalidInput("insecure and tls contradict each other")
    if asked or not (local or insecure):
        roots = None if tls_ca is None else _read(tls_ca, "the authorities' file")
        credentials = grpc.ssl_channel_credentials(root_certificates=roots)
        token = _token(token_file)
        if token:
            credentials = grpc.composite_channel_credentials(
                credentials, grpc.access_token_call_credentials(token))
        channel = grpc.secure_channel(address, credentials, _OPTIONS)
    elif token_file is not None:
        raise InvalidInput(
            "token_file needs tls: over a plain connection anybody could read the token")
    else:
        channel = grpc.insecure_channel(address, _OPTIONS)
    try:
        _await_connection(channel, address, timeout)
    except BaseException:
        channel.close()
        raise
    return channel


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
