"""explore: searches accuracy against size, and answers with a front of checked designs."""
