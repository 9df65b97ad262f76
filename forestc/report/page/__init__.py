"""Pages of HTML: a compiled design, or a study, as one file that needs nothing else."""
