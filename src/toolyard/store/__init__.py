"""One `Store` over SQLite or PostgreSQL. No SQL lives outside this room and `durable/`."""
