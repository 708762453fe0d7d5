"""Who is calling: API keys, operators' logins, and the gate that every face asks."""

from toolyard.identity.exposure import check_exposure, is_loopback
from toolyard.identity.gate import Caller, Gate
from toolyard.identity.keys import KeyInfo, Keys
from toolyard.identity.operators import ConsoleSession, Operators

__all__ = ["Caller", "ConsoleSession", "Gate", "KeyInfo", "Keys", "Operators", "check_exposure", "is_loopback"]
