"""Worker processes start without running the user's script again."""

import subprocess
import sys

SCRIPT = """
import pickle
import forestc
from forestc.exploration import pool

class Material:
    asked = type("Asked", (), {"trial_seconds": 60.0, "trial_mb": None})

def own():
    pass

print("begun")
for bench in (b"", pickle.dumps(own)):
    try:
        worker = pool._Worker(bench)
        pool._end([worker])
        print("started")
    except forestc.ForestcError as error:
        print(error)
"""


def test_a_script_needs_no_guard_unless_it_defines_what_workers_call(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["begun", "started"] and len(lines) <= 4
