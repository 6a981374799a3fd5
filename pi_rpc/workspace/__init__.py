"""States of the working directory: named, compared, and honest when unknown."""
