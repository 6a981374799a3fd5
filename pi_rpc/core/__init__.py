"""What is true: the session tree and every decision about it, free of any input or output."""
