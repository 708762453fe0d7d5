-- What a call's way through approvals and clients needs beside the tables of durable work.

ALTER TABLE tool_settings ADD COLUMN approval_timeout {double};

-- Approval policy of whole clusters. auto_approve: 'true', 'false' or 'read_only'.
CREATE TABLE cluster_settings (
  cluster TEXT PRIMARY KEY,
  auto_approve TEXT NOT NULL,
  updated {double} NOT NULL
);

CREATE INDEX calls_unclaimed ON calls (deadline) WHERE execution = 'client' AND state = 'PENDING';
CREATE INDEX calls_with_client ON calls (session_id) WHERE execution = 'client' AND state IN ('PENDING', 'PROCESSING');
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;
