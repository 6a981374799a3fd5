"""A typed client for the pi-rpc daemon: `client` to talk to it, `process` for the child itself."""
