"""Where tools come from: one room per kind, all behind the `Provider` protocol of `base`."""
