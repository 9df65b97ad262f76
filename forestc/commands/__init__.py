"""What users do: a module for each command, with the function of the same name."""
