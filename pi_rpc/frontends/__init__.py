"""Doors: each speaks one protocol's words, exactly."""
