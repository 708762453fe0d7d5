"""What went wrong with an outbound request, in words that name host and cause and never a credential."""

from __future__ import annotations

import ssl

import aiohttp

from toolyard.core.errors import EgressError
from toolyard.egress.redact import authority


def invalid_url(cause: str) -> EgressError:
    return EgressError(
        f"The address cannot be used: {cause}.", suggestion="Give a full http:// or https:// address with a host."
    )


def timed_out(url: str, seconds: float) -> EgressError:
    return EgressError(
        f"{host_of(url)} did not answer within {seconds:g} s.",
        suggestion="Try again later, or allow a longer time limit.",
        sent=True,
    )


def of(error: aiohttp.ClientError | OSError | ValueError, url: str) -> EgressError:
    """aiohttp's error as ours. `sent` is false only when certainly nothing left this machine."""
    host = host_of(url)
    return _before_sending(error, host) or EgressError(_after_sending(error, host), sent=True)


def _before_sending(error: Exception, host: str) -> EgressError | None:
    message, suggestion = None, _REACH
    match error:
        case aiohttp.ConnectionTimeoutError():
            message = f"No connection to {host}: it did not accept one in time."
        case aiohttp.ClientConnectorCertificateError():
            message = f"The TLS certificate of {host} is not trusted: {_certificate_cause(error.certificate_error)}."
            suggestion = "Check the address; a private authority can be trusted by setting SSL_CERT_FILE."
        case aiohttp.ClientConnectorDNSError():
            message, suggestion = f"The name {host} cannot be resolved.", "Check the address for a typo."
        case aiohttp.ClientConnectorError():
            message = f"No connection to {host}: {_socket_cause(error)}."
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return invalid_url("it is no http or https URL")
        case ValueError():
            message = f"The request to {host} cannot be sent: a header or the address is malformed."
        case _:
            return None
    return EgressError(message, suggestion=suggestion)


def _after_sending(error: Exception, host: str) -> str:
    match error:
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without an answer."
        case aiohttp.ClientPayloadError():
            return f"The answer of {host} broke off."
        case aiohttp.ClientResponseError():
            return f"{host} did not answer in valid HTTP: {error.message}."
        case _:
            return f"The request to {host} failed: {type(error).__name__}."


_REACH = "Check the address, and that the service is running and reachable from here."


def _socket_cause(error: aiohttp.ClientOSError) -> str:
    cause = getattr(error, "os_error", error)
    return str(getattr(cause, "strerror", None) or cause)


def _certificate_cause(error: object) -> str:
    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else type(error).__name__


def host_of(url: str) -> str:
    try:
        return authority(url) or "the host"
    except ValueError:
        return "the host"
