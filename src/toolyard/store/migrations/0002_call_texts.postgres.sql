-- The text index of the audit log (store/call_texts.py fills it, off the write path).
CREATE TABLE call_texts (rid BIGINT PRIMARY KEY, body TSVECTOR NOT NULL);
CREATE INDEX call_texts_body ON call_texts USING GIN (body);
