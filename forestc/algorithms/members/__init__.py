"""Members of an ensemble: the best few, by search and by integer program."""
