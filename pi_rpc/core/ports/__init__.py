"""The whole outside: what a session needs done for it, by whom it never knows."""
