"""Outbound HTTP: the only room that builds clients. Every byte we send to somebody else goes through here."""

from toolyard.egress.client import MIB, Egress, Response, StreamedResponse
from toolyard.egress.policy import OPEN, AddressPolicy
from toolyard.egress.redact import without_secrets

__all__ = ["MIB", "OPEN", "AddressPolicy", "Egress", "Response", "StreamedResponse", "without_secrets"]
