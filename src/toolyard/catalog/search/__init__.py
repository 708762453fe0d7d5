"""Which tools does this request need? The protocol; the engine behind it is imported with the first search."""
