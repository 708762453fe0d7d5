"""What `toolyard serve --demo` shows: a pet shop's HTTP API, a notes server over stdio, three Python functions."""
