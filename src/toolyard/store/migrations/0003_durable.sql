-- Durable work: jobs and their steps, nodes, sessions and their events, approvals, leases of client calls, schedules.
-- Every time that two nodes compare was written by the database's clock.

CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  lease {double} NOT NULL,
  version TEXT NOT NULL,
  url TEXT,
  started {double} NOT NULL
);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  agent_id TEXT,
  seq {bigint} NOT NULL DEFAULT 0,
  active_turn TEXT,
  customizations TEXT,
  meta TEXT,
  created {double} NOT NULL,
  deleted {double}
);
CREATE INDEX sessions_principal ON sessions (principal, created DESC);

CREATE TABLE events (
  session_id TEXT NOT NULL,
  seq {bigint} NOT NULL,
  kind TEXT NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  turn TEXT,
  at {double} NOT NULL,
  PRIMARY KEY (session_id, seq)
);

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  session_id TEXT,
  kind TEXT NOT NULL,
  input TEXT NOT NULL,
  state TEXT NOT NULL,
  owner TEXT,
  epoch {bigint} NOT NULL DEFAULT 0,
  takeovers {bigint} NOT NULL DEFAULT 0,
  wake_at {double},
  wake_key TEXT,
  result TEXT,
  error TEXT,
  created {double} NOT NULL,
  finished {double}
);
CREATE INDEX jobs_open ON jobs (state, wake_at) WHERE state IN ('ready', 'running', 'waiting');
CREATE INDEX jobs_owner ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_session ON jobs (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE steps (
  job_id TEXT NOT NULL,
  n {bigint} NOT NULL,
  name TEXT NOT NULL,
  digest TEXT,
  output TEXT NOT NULL,
  node TEXT NOT NULL,
  epoch {bigint} NOT NULL,
  at {double} NOT NULL,
  PRIMARY KEY (job_id, n)
);

-- session_id, job_id: who asked. run_job: the call's own job, once it had to wait. owner, epoch: the node that runs it.
ALTER TABLE calls ADD COLUMN session_id TEXT;
ALTER TABLE calls ADD COLUMN job_id TEXT;
ALTER TABLE calls ADD COLUMN run_job TEXT;
ALTER TABLE calls ADD COLUMN execution TEXT NOT NULL DEFAULT 'node';
ALTER TABLE calls ADD COLUMN owner TEXT;
ALTER TABLE calls ADD COLUMN epoch {bigint};
ALTER TABLE calls ADD COLUMN deadline {double};
ALTER TABLE calls ADD COLUMN waiting TEXT;
CREATE INDEX calls_session ON calls (session_id, created) WHERE session_id IS NOT NULL;
CREATE INDEX calls_job ON calls (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX calls_run_job ON calls (run_job) WHERE run_job IS NOT NULL;

-- Narrow, because it is rewritten every two seconds; only calls in flight. A lost row means one fresh time-out.
CREATE TABLE call_leases (
  call_id TEXT PRIMARY KEY,
  lease_until {double} NOT NULL
);
CREATE INDEX call_leases_until ON call_leases (lease_until);

CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  call_id TEXT NOT NULL,
  gate TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT,
  principal TEXT NOT NULL,
  server TEXT,
  session_id TEXT,
  why TEXT NOT NULL,
  created {double} NOT NULL,
  deadline {double} NOT NULL,
  decision TEXT,
  decided_by TEXT,
  decided_at {double},
  reason TEXT,
  edited_arguments TEXT,
  scope TEXT
);
CREATE UNIQUE INDEX approvals_call ON approvals (call_id, gate);
CREATE INDEX approvals_open ON approvals (created, id) WHERE decision IS NULL;
CREATE INDEX approvals_created ON approvals (created DESC, id DESC);
CREATE INDEX approvals_session ON approvals (session_id) WHERE session_id IS NOT NULL;

-- 'Allow for the session': `holder` is session:<id> or principal:<name>. Worth nothing once the tool's definition changes.
CREATE TABLE allowances (
  holder TEXT NOT NULL,
  tool TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  granted_by TEXT NOT NULL,
  at {double} NOT NULL,
  PRIMARY KEY (holder, tool)
);

CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  cron TEXT NOT NULL,
  tz TEXT NOT NULL,
  kind TEXT NOT NULL,
  input TEXT NOT NULL,
  state TEXT NOT NULL,
  next_fire {double},
  last_fire {double},
  misfire TEXT NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_fire) WHERE state = 'active';
