-- Whether an operator lets a tool's calls become MCP tasks: 'never', 'auto' or 'always'; NULL leaves it to the tool.
ALTER TABLE tool_settings ADD COLUMN task TEXT;
