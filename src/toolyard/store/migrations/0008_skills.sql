CREATE TABLE skills (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  updated {double} NOT NULL
);

-- Files as JSON: path -> base64. The listing is what a list needs of them.
CREATE TABLE skill_versions (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  listing TEXT NOT NULL,
  content TEXT NOT NULL,
  author TEXT NOT NULL,
  created {double} NOT NULL,
  PRIMARY KEY (name, version)
);
