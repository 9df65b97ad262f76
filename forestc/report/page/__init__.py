"""Makes HTML pages of a compiled design or a study, each a single file that loads nothing else."""
