-- The text index of the audit log (store/call_texts.py fills it, off the write path).
CREATE VIRTUAL TABLE call_texts USING fts5(body, tokenize = 'unicode61 remove_diacritics 0', prefix = '2 3');
