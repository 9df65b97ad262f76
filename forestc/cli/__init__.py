"""Holds the command line: it reads the fields of the options, calls the commands, and prints their results."""

from forestc.cli.program import app as app
from forestc.cli.program import main as main
