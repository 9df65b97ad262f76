"""Starts the program. Ctrl-C gives one line even while the command line is being imported."""

from __future__ import annotations

import sys


def run() -> None:
    try:
        from forestc.cli import main
    except KeyboardInterrupt:
        from forestc.errors import interrupted

        interrupted(130).tell("--json" in sys.argv)
        sys.exit(130)
    main()


if __name__ == "__main__":
    run()
