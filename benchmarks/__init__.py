"""Measurements, never timed tests: `python -m benchmarks.<name> --json out.json`."""
