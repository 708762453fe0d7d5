"""The composition root: builds everything once from settings and manifest, starts it and stops it."""

from toolyard.app.app import App
from toolyard.app.settings import Settings

__all__ = ["App", "Settings"]
