"""Durable work and events. So far: the in-process event bus."""
