"""check holds every arrow of the compiler to its promise."""
