"""Live sessions: the loop, the moves and the only write path."""
