"""pi-rpc: a daemon that owns coding-agent sessions and serves them over JSON-RPC."""

__version__ = "0.1.0"
