"""Level 1: the Forest, the meaning of a tree ensemble."""
