"""Makes HTML pages of a compiled design or a study. Each page is a single file that loads nothing else."""
