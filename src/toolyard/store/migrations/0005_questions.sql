-- What running tools ask their callers, one row for each question. An answer is JSON, as the client gave it.
-- held: the tool waits in memory on a node; otherwise the call's job goes on, on any node, with the upstream's state;
-- taken: a run went on with the answer.
CREATE TABLE questions (
  id TEXT PRIMARY KEY,
  call_id TEXT NOT NULL,
  round INTEGER NOT NULL,
  key TEXT NOT NULL,
  upstream_key TEXT NOT NULL,
  method TEXT NOT NULL,
  params TEXT NOT NULL,
  held INTEGER NOT NULL,
  upstream_state TEXT,
  created {double} NOT NULL,
  deadline {double} NOT NULL,
  answer TEXT,
  answered_at {double},
  taken INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX questions_of_call ON questions (call_id, key);
