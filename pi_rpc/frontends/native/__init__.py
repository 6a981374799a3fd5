"""Our own JSON-RPC protocol: shapes and handlers side by side."""
