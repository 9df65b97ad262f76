"""Implements the command line: reads the options, calls the commands, and prints their results."""

from forestc.cli.program import app as app
from forestc.cli.program import main as main
