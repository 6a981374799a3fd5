"""One act: ask a model once, or run one batch of calls."""
