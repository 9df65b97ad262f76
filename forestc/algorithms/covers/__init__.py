"""Set covers by column generation: decision rules, and factors of binary matrices."""
