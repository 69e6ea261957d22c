"""Where tools come from besides Python: MCP servers, each owned by one task from open to close."""
