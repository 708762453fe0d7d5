-- What a legacy MCP session set after it began; most sessions set nothing and have no row.
CREATE TABLE session_notes (
  nonce TEXT PRIMARY KEY,
  log_level TEXT,
  uris TEXT NOT NULL,
  changed {double} NOT NULL,
  expires {double} NOT NULL
);
CREATE INDEX session_notes_changed ON session_notes (changed);
