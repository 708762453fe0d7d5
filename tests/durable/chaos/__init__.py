"""Durable calls under fire: real nodes that are killed and paused, clients that write down what they were told, and a
checker that compares it with the database and with what happened outside it.

| module | |
|---|---|
| `effects` | tools whose every effect is one line in a file outside the database |
| `node`, `nursery`, `cluster` | node processes: one, the process that forks them, and a set of them on one database |
| `yard` | an empty database made ready: keys, and triggers that record every move of a row |
| `client`, `workload`, `history` | seeded clients that try again on any node, and the record of what they saw |
| `nemesis` | kill -9, pauses beyond the lease, crashes and cut connections of PostgreSQL |
| `evidence`, `checker` | what is left afterwards, and what must be true of it |
| `mutants` | defects that the checker must catch |
"""
