"""Sending over HTTP and to chats; what goes wrong is said without address or secret."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from fabricobs import __version__

_TIMEOUT_S = 10.0


class DeliveryError(Exception):
    """A target that did not take what was sent; the text holds neither address nor secret."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST arrives as an empty GET: it is refused instead."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow none."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def post_json(
    url: str, document: Any, *, token: str | None = None, headers: Mapping[str, str] | None = None
) -> None:
    """Send a document; DeliveryError unless the answer's status is a success.

    The answer's body is not read: it may be endless. The timeout is that of a socket operation;
    who calls sets a deadline for the whole.
    """
    fields = {"Content-Type": "application/json", "User-Agent": f"fabricobs/{__version__}"}
    fields |= dict(headers or {})
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    body = json.dumps(document, allow_nan=False).encode()
    try:
        request = urllib.request.Request(url, body, fields, method="POST")
        with _OPENER.open(request, timeout=_TIMEOUT_S):
            pass
    except urllib.error.HTTPError as error:
        with error:
            raise DeliveryError(f"it answered {error.code}") from None
    except urllib.error.URLError as error:
        raise DeliveryError(_reason(error.reason)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DeliveryError(_reason(error)) from None


def notify_chats(urls: Sequence[str], title: str, body: str, *, failed: bool) -> None:
    """Send a short text through apprise; DeliveryError if not all of the addresses took it."""
    import apprise

    chats = apprise.Apprise()
    for url in urls:
        chats.add(url)
    kind = apprise.NotifyType.FAILURE if failed else apprise.NotifyType.SUCCESS
    text = apprise.NotifyFormat.TEXT
    if not chats.notify(title=title, body=body, notify_type=kind, body_format=text):
        raise DeliveryError("not all of its targets took it")


def _reason(error: object) -> str:
    """Say why in words of ours or of the system: others may hold the address."""
    if isinstance(error, TimeoutError):
        return f"no answer in {_TIMEOUT_S:.0f} s"
    if isinstance(error, socket.gaierror):
        return "its host name is not known"
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return error.strerror
    return type(error).__name__
