"""Set covers by column generation: decision rules."""
