"""Tells people outside that a call waits for their decision: signed webhooks, and whatever Apprise can reach.

A notification is a courtesy, never the record: the approval itself is a row, shown in the console and in every face.
So nothing here blocks a call, and what cannot be delivered is logged and given up.
"""

from toolyard.notify.channels import Channel, NotDelivered, channels_of
from toolyard.notify.notice import Notice
from toolyard.notify.notifier import Notifier
from toolyard.notify.signing import SIGNATURE_HEADER, BadSignature, sign, verify

__all__ = [
    "SIGNATURE_HEADER",
    "BadSignature",
    "Channel",
    "NotDelivered",
    "Notice",
    "Notifier",
    "channels_of",
    "sign",
    "verify",
]
