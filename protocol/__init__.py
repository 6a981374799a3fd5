"""The protocol as files: schema, OpenRPC, pages and client types, written from the one table."""
