"""One file per kind of thing under `/v1`."""
