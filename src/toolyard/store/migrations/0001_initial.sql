-- Times are epoch seconds. JSON is text. The same file runs on SQLite and PostgreSQL:
-- {serial} {double} {bigint} {blob} are replaced by the dialect's words.

CREATE TABLE calls (
  rid {serial},
  id TEXT NOT NULL UNIQUE,
  tool TEXT NOT NULL,
  namespace TEXT NOT NULL,
  principal TEXT NOT NULL,
  origin TEXT NOT NULL,
  server TEXT,
  state TEXT NOT NULL,
  arguments TEXT,
  arguments_ref TEXT,
  result TEXT,
  result_ref TEXT,
  preview TEXT,
  error TEXT,
  error_code TEXT,
  suggestion TEXT,
  details TEXT,
  idempotency_key TEXT,
  request_hash TEXT,
  created {double} NOT NULL,
  started {double},
  finished {double},
  input_bytes {bigint} NOT NULL,
  output_bytes {bigint},
  tokens {bigint}
);
CREATE INDEX calls_created ON calls (created DESC, rid DESC);
CREATE INDEX calls_tool ON calls (tool, created DESC);
CREATE INDEX calls_open ON calls (created) WHERE state IN ('PENDING', 'PROCESSING');
CREATE UNIQUE INDEX calls_idempotency ON calls (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Calls the text index met before they had ended: it comes back to them.
CREATE TABLE calls_to_index (rid {bigint} PRIMARY KEY);

CREATE TABLE providers (
  id TEXT PRIMARY KEY,
  config TEXT NOT NULL,
  document_ref TEXT,
  created {double} NOT NULL,
  updated {double} NOT NULL
);

CREATE TABLE servers (
  id TEXT PRIMARY KEY,
  config TEXT NOT NULL,
  created {double} NOT NULL,
  updated {double} NOT NULL
);

CREATE TABLE tool_settings (
  tool TEXT PRIMARY KEY,
  enabled {bigint},
  approval TEXT,
  time_limit {double},
  description TEXT,
  updated {double} NOT NULL
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created {double} NOT NULL,
  expires {double},
  last_used {double},
  revoked {double}
);
CREATE UNIQUE INDEX api_keys_live_name ON api_keys (name) WHERE revoked IS NULL;

CREATE TABLE login_links (
  token_hash TEXT PRIMARY KEY,
  created {double} NOT NULL,
  expires {double} NOT NULL,
  used {double}
);

CREATE TABLE console_sessions (
  id_hash TEXT PRIMARY KEY,
  csrf TEXT NOT NULL,
  operator TEXT NOT NULL,
  created {double} NOT NULL,
  expires {double} NOT NULL
);

CREATE TABLE idempotency (
  principal TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  owner TEXT NOT NULL,
  status {bigint},
  headers TEXT,
  body TEXT,
  expires {double} NOT NULL,
  PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_expires ON idempotency (expires);

CREATE TABLE values_kept (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE ended_sessions (
  digest TEXT PRIMARY KEY,
  ended {double} NOT NULL,
  expires {double} NOT NULL
);
CREATE INDEX ended_sessions_ended ON ended_sessions (ended);
