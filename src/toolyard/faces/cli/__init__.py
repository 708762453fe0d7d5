"""The `toolyard` command. Each group of commands is one file; whatever is heavy is imported inside a command."""
