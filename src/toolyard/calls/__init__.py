"""The one call path: resolve, validate, authorize, approve, execute, shape, record. Nothing else executes a tool."""
