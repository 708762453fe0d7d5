"""Each face translates a wire into calls on the floors below; none has rules of its own."""
