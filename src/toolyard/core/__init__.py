"""Pure types and rules: the vocabulary of the project. No I/O, and nothing of ours is imported from here."""
