"""Starts, watches, reconnects and ends providers; every call to a provider goes through here."""

from toolyard.providers.supervisor.policy import RetryPolicy
from toolyard.providers.supervisor.status import ProviderState, ProviderStatus
from toolyard.providers.supervisor.supervisor import Supervisor

__all__ = ["ProviderState", "ProviderStatus", "RetryPolicy", "Supervisor"]
