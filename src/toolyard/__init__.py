"""Toolyard."""
