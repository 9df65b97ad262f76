"""The command line: it reads the options' fields, calls the commands, and prints what they return."""

from forestc.cli.program import app as app
from forestc.cli.program import main as main
