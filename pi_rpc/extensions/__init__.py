"""Python code of the user's that takes part in sessions, within this process."""
