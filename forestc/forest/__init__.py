"""The Forest: the meaning of a trained tree ensemble."""
