"""JSON-RPC 2.0 over streams of bytes: framing, messages, the one writer, a peer at either end."""
