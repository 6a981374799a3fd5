"""Where histories are kept: one writer a session, append only."""
