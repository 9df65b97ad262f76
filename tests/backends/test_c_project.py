"""Tests the files for build systems beside the C header with the real tools, and their self-test."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from models import trained
from random_forests import random_forest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from thinned import only

import forestc
from forestc.backends.c import project as c_project
from forestc.backends.c.choice import KITS, check
from forestc.backends.c.options import COptions
from forestc.backends.table import implied_roles
from forestc.backends.vectors import vectors
from forestc.checks.bench import SELFTEST_ROWS, selftest_answers
from forestc.errors import ForestcError, OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.rows.batches import ArrayRows
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler

CXX = [flag for flag in STRICT if not flag.startswith("-std")]


def run(command, folder, check=True):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=check)


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    """Compiles a model of three named classes."""
    model, X, y = trained("forest-text-labels")
    folder = tmp_path_factory.mktemp("project") / "out"
    return forestc.compile(model, X, folder, label=y, targets="c", name="iris", c_project="all").design


@pytest.fixture
def folder(design, tmp_path):
    """Copies the folder c of the design."""
    run(["cp", "-r", str(design.folder / "c"), "."], tmp_path)
    return tmp_path / "c"


def damage(header: Path):
    """Changes the threshold at the root of a tree, as a flipped bit in flash would."""
    text = header.read_text()
    changed = re.sub(r"if \((x\[\d+\]) < (\d+)u\)", lambda m: f"if ({m[1]} < {int(m[2]) + 40}u)", text, count=1)
    assert changed != text
    header.write_text(changed)


def test_the_header_stays_alone_by_default(tmp_path):
    model, X, y = trained("tree-binary")
    made = forestc.compile(model, X, tmp_path / "out", label=y, targets="c", name="m").design
    with pytest.raises(ForestcError, match="compile with c_project=all"):
        made.path("c_selftest")
    assert made.manifest["files"] == {"c": "c/m.h"} and made.manifest["options"]["c"]["project"] == "none"


def test_lists_of_kits(tmp_path):
    assert tuple(c_project.FILES) == KITS
    assert c_project.roles("none") == () and c_project.roles("selftest") == ("c_selftest",)
    assert set(c_project.roles("all")) == set(c_project.roles(",".join(reversed(KITS))))
    model, X, y = trained("tree-binary")
    options = {"label": y, "targets": "c", "name": "m", "c_project": "zephyr,selftest"}
    made = forestc.compile(model, X, tmp_path / "out", **options).design
    assert set(made.manifest["files"]) == implied_roles(made.manifest["options"])
    assert set(made.manifest["files"]) == {"c", "c_selftest", "c_zephyr", "c_zephyr_cmake", "c_zephyr_kconfig"}
    for wrong in ("make", "cmake,", "all,cmake", ""):
        with pytest.raises(OptionError, match=r"c_project=.*; use none, all, or a list of selftest, cmake"):
            check(COptions(c_project=wrong))


def test_cmake_builds_it_and_ctest_finds_a_wrong_leaf(folder, need_tool):
    need_tool("cmake")
    flags = f"-DCMAKE_C_FLAGS={' '.join(STRICT)}"
    run(["cmake", "-B", "build", flags], folder)
    run(["cmake", "--build", "build"], folder)
    assert "100% tests passed, 0 tests failed out of 1" in run(["ctest", "--test-dir", "build"], folder).stdout
    damage(folder / "iris.h")
    run(["cmake", "--build", "build"], folder)
    done = run(["ctest", "--test-dir", "build", "--output-on-failure"], folder, check=False)
    assert done.returncode and re.search(r"iris: row \d+ of the self-test is wrong", done.stdout)


def test_cmake_takes_it_as_a_subdirectory(folder, need_tool, tmp_path):
    need_tool("cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nadd_subdirectory(c)\n"
        "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE forestc::iris)\n"
    )
    (tmp_path / "main.c").write_text("#include <iris_selftest.h>\nint main(void) { return iris_selftest() + 1; }\n")
    run(["cmake", "-B", "build"], tmp_path)
    run(["cmake", "--build", "build"], tmp_path)
    run([str(tmp_path / "build" / "app")], tmp_path)
    assert not list((tmp_path / "build").rglob("*iris_selftest"))  # as a part of a project it brings no tests


ARDUINO = """
#pragma once
#include <stdint.h>
#include <avr/pgmspace.h>
#define F(text) text
unsigned long micros(void);
void delay(unsigned long);
struct Port { void begin(long); void print(const char *); void println(long); void println(const char *); };
extern Port Serial;
"""


def test_the_arduino_sketch_keeps_its_tables_in_flash_on_avr(folder, need_tool):
    need_tool("avr-g++")
    (folder / "Arduino.h").write_text(ARDUINO)
    sketch = ["-include", "Arduino.h", "-x", "c++", "examples/iris/iris.ino"]
    run(["avr-g++", "-mmcu=atmega328p", "-Os", "-std=gnu++11", *CXX, "-I.", *sketch, "-c", "-o", "s.o"], folder)
    sections = run(["avr-size", "-A", "s.o"], folder).stdout
    sizes = {line.split()[0]: int(line.split()[1]) for line in sections.splitlines() if line.startswith(".")}
    assert sum(size for name, size in sizes.items() if name.startswith(".progmem")) > 32 * 4
    text = sum(size for name, size in sizes.items() if name.startswith((".data", ".bss", ".rodata")))
    assert text < 120  # The rest are the sketch's own messages, which the real F() puts into flash.


ACCELEROMETER = Path(__file__).parents[2] / "examples" / "accelerometer"
# Samples come from the standard input, one for each request; each call of loop takes 5 ms.
COMPUTER = {
    "Arduino.h": """
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static unsigned long now = 0;
static unsigned long micros() { return now; }
static unsigned long millis() { return now / 1000; }
struct Port { void begin(long) {} void println(const char *text) { printf("%lu %s\\n", millis(), text); } };
static Port Serial;
""",
    "Wire.h": """
#pragma once
#include <stdint.h>
#include <stdio.h>
struct Bus {
    int16_t sample[3];
    int at = 0;
    void begin() {}
    void beginTransmission(uint8_t) {}
    void write(uint8_t) {}
    uint8_t endTransmission(bool = true) { return 0; }
    uint8_t requestFrom(uint8_t, uint8_t count) {
        at = 0;
        return fread(sample, 2, 3, stdin) == 3 ? count : 0;
    }
    int read() {
        const int value = static_cast<uint16_t>(sample[at / 2]) >> (at % 2 ? 0 : 8) & 255;
        at++;
        return value;
    }
};
static Bus Wire;
""",
    "main.cpp": """
#include "Arduino.h"
#include "motion_loop.ino"
int main() {
    for (setup(); !feof(stdin); now += 5000) loop();
}
""",
}


@pytest.fixture(scope="module")
def motions(tmp_path_factory):
    """Compiles the forest of the example; returns the design and the example's module of windows."""
    place = importlib.util.spec_from_file_location("windows", ACCELEROMETER / "windows.py")
    windows = importlib.util.module_from_spec(place)
    place.loader.exec_module(windows)
    train, label = windows.motions(600, seed=0)
    rows = pd.DataFrame(windows.features(train), columns=windows.FEATURES)
    model = RandomForestClassifier(12, max_depth=6, random_state=0).fit(rows, label)
    options = {"c_inputs": "raw", "c_types": "*=int16", "c_project": "arduino", "outputs": "label"}
    folder = tmp_path_factory.mktemp("motion") / "out"
    return forestc.compile(model, rows, folder, label=label, targets="c", name="motion", **options).design, windows


def test_the_sketch_of_the_sensor_tells_motions_and_pauses(motions, tmp_path):
    design, windows = motions
    for name, text in COMPUTER.items():
        (tmp_path / name).write_text(text)
    places = [f"-I{folder}" for folder in (tmp_path, design.folder / "c", ACCELEROMETER / "motion_loop")]
    run([cxx_compiler(), "-std=c++11", *CXX, *places, "main.cpp", "-o", "main"], tmp_path)
    samples = windows.motions(60, seed=1)[0].reshape(-1, 3)
    done = subprocess.run([tmp_path / "main"], input=samples.tobytes(), capture_output=True, check=True)
    expected, last = [], None
    for end in range(windows.SAMPLES, len(samples) + 1, windows.SAMPLES // 4):
        time = round((end - 1) / windows.RATE * 1000)
        row = pd.DataFrame(windows.features(samples[None, end - windows.SAMPLES : end]), columns=windows.FEATURES)
        (motion,) = design.predict(row)
        if motion != "rest" and (last is None or time - last >= 2000):
            expected.append(f"{time} {motion}")
            last = time
    assert done.stdout.decode().splitlines() == expected
    assert len(expected) > 10 and len({line.split()[1] for line in expected}) == 3


def test_the_sketch_of_the_sensor_fits_an_arduino(motions, need_tool, tmp_path):
    need_tool("avr-g++")
    design, _ = motions
    (tmp_path / "Arduino.h").write_text(f"{ARDUINO}#include <string.h>\nunsigned long millis(void);\n")
    bus = ["begin()", "beginTransmission(uint8_t)", "write(uint8_t)"]
    calls = "".join(f"void {call};" for call in bus)
    calls += "uint8_t endTransmission(bool = true); uint8_t requestFrom(uint8_t, uint8_t); int read();"
    (tmp_path / "Wire.h").write_text(f"#pragma once\nstruct Bus {{ {calls} }};\nextern Bus Wire;\n")
    places = [f"-I{folder}" for folder in (tmp_path, design.folder / "c", ACCELEROMETER / "motion_loop")]
    sketch = ["-include", "Arduino.h", "-x", "c++", str(ACCELEROMETER / "motion_loop" / "motion_loop.ino")]
    run(["avr-g++", "-mmcu=atmega328p", "-Os", "-std=gnu++11", *CXX, *places, *sketch, "-c", "-o", "s.o"], tmp_path)
    sections = run(["avr-size", "-A", "s.o"], tmp_path).stdout
    sizes = {line.split()[0]: int(line.split()[1]) for line in sections.splitlines() if line.startswith(".")}
    ram = sum(size for name, size in sizes.items() if name.startswith((".data", ".bss", ".rodata")))
    assert ram < 600 and sum(sizes.values()) < 32_000


CORE = Path("/usr/share/arduino/hardware")  # holds Arduino's core, as Debian's arduino-core-avr installs it
CTAGS = '"{cmd.path}" -u --language-force=c++ -f - --c++-kinds=svpf --fields=KSTtzns --line-directives "{source_file}"'


@pytest.mark.parametrize("wrong", [False, True])
def test_arduinos_own_builder_takes_the_library_and_the_sketch_runs(folder, need_tool, tmp_path, wrong):
    for name in ("arduino-builder", "arduino-ctags", "avr-g++", "simavr"):
        need_tool(name)
    said = dict(line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines())
    assert said["name"] == "iris" and said["includes"] == "iris.h" and said["architectures"] == "*"
    if wrong:
        damage(folder / "iris.h")
    libraries, tools = tmp_path / "libraries", tmp_path / "avr" / "bin"
    run(["cp", "-r", str(folder), "iris"], mkdir(libraries))
    for name in ("gcc", "g++", "ar", "gcc-ar", "objcopy", "size"):
        (mkdir(tools) / f"avr-{name}").symlink_to(f"/usr/bin/avr-{name}")
    settings = {
        "runtime.tools.avr-gcc.path": tools.parent,
        "tools.ctags.path": "/usr/bin",
        "tools.ctags.cmd.path": "/usr/bin/arduino-ctags",
        "tools.ctags.pattern": CTAGS,
        # The core reads this macro, which Debian's old GCC does not define.
        "compiler.cpp.extra_flags": "-DDECIMAL_DIG=17",
    }
    places = ["-hardware", str(CORE), "-tools", str(tools.parents[1]), "-libraries", str(libraries)]
    options = [f"-prefs={key}={value}" for key, value in settings.items()]
    sketch = str(libraries / "iris" / "examples" / "iris" / "iris.ino")
    made = ["-fqbn", "arduino:avr:mega:cpu=atmega2560", "-build-path", str(mkdir(tmp_path / "made"))]
    run(["arduino-builder", "-compile", *places, *made, *options, sketch], tmp_path)
    image = str(tmp_path / "made" / "iris.ino.elf")
    # simavr writes the board's output to the standard error, line by line.
    board = subprocess.Popen(["simavr", "-m", "atmega2560", "-f", "16000000", image], stderr=subprocess.PIPE, text=True)
    try:
        said = next(line for line in board.stderr if "iris" in line)
    finally:
        board.kill()
        board.communicate()
    assert re.search(r"iris: wrong answer for row \d+" if wrong else r"iris: all answers are right; .*a row: \d+", said)


def mkdir(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_platformio_and_zephyr_find_the_header(folder, need_tool, tmp_path):
    need_tool("cmake")
    library = json.loads((folder / "library.json").read_text())
    assert library["name"] == "iris" and library["headers"] == "iris.h" and library["build"]["includeDir"] == "."
    module = yaml.safe_load((folder / "zephyr" / "module.yml").read_text())
    assert module == {"name": "iris", "build": {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}}
    assert (folder / "zephyr" / "Kconfig").read_text().startswith("config FORESTC_IRIS\n\tbool ")
    # This imitates Zephyr, which adds the module's folder with its own functions and the configuration.
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\n"
        "function(zephyr_include_directories)\n  include_directories(${ARGV})\n"
        '  message(STATUS "included: ${ARGV}")\nendfunction()\nadd_subdirectory(c/zephyr)\n'
    )
    for value in ("y", ""):
        out = run(["cmake", "-B", f"build{value}", f"-DCONFIG_FORESTC_IRIS={value}"], tmp_path).stdout
        assert (f"included: {folder}/zephyr/.." in out) == bool(value)


MAIN = """#include <stdio.h>
#include "m_selftest.h"
int main(void) { printf("%d\\n", m_selftest()); return 0; }
"""


@pytest.mark.parametrize(
    ("kind", "inputs"),
    only(
        [
            (kind, inputs)
            for kind in ("forest-missing", "xgboost-multi", "tree-regression")
            for inputs in ("words", "struct", "float")
        ],
        *(0, 4, 8),
    ),
)
def test_the_selftest_is_clean_and_right_and_finds_each_wrong_row(kind, inputs, tmp_path):
    model, X, y = trained(kind)
    if kind == "xgboost-multi":
        model = clone(model).set_params(n_estimators=2).fit(X, y)
    options = {"c_inputs": inputs, "c_project": "selftest", "c_layout": "nodes" if inputs == "struct" else "branches"}
    made = forestc.compile(model, X, tmp_path / "out", label=y, targets="c", name="m", **options).design
    folder = made.folder / "c"
    (folder / "main.c").write_text(MAIN)
    cxx = [cxx_compiler(), "-std=c++17", *CXX, "-x", "c++", "-fsyntax-only", "main.c"]
    run(cxx, folder)

    def said():
        run([c_compiler(), *STRICT, "main.c", "-o", "m"], folder)
        return int(run([str(folder / "m")], folder).stdout)

    assert said() == -1
    selftest = folder / "m_selftest.h"
    text = selftest.read_text()
    assert "#define M_SELFTEST_ROWS 32" in text
    for table in ("scores", "labels") if made.forest.decides else ("scores",):
        head, rest = text.split(f"m_selftest_{table}[", 1)
        lines = rest.split("\n")
        value = re.match(r"    \{(-?\d+|INT32_C\(-?\d+\))(u?)", lines[18])
        lines[18] = lines[18].replace(value[1], "1" if value[1] == "0" else "0", 1)
        selftest.write_text(f"{head}m_selftest_{table}[" + "\n".join(lines))
        assert said() == 17


def test_the_rows_reach_every_class_that_can_be_reached():
    for seed in range(40):
        forest = random_forest(seed, True)
        rows = ArrayRows(np.zeros((3, forest.columns)))
        found = selftest_answers(forest, COptions(), rows)
        assert replace(found, raw=()) == replace(selftest_answers(forest, COptions(), rows), raw=())
        output = evaluate_words(forest, np.array(found.words))
        assert len(found.words) == SELFTEST_ROWS and np.array_equal(output.scores, found.scores)
        assert bool(found.labels[0]) == forest.decides
        if forest.decides:
            assert np.array_equal(output.index.reshape(SELFTEST_ROWS, -1), found.labels)
            words = np.concatenate([some.words for some in vectors(forest, rows, 256, 0, 1000)])
            reached = evaluate_words(forest, words).index.reshape(len(words), -1)
            for own, every in zip(np.array(found.labels).T, reached.T, strict=True):
                assert set(own) == set(every)


def test_classes_that_few_rows_reach_are_among_them():
    """Uses 300 classes, each for one value of the feature."""
    from forestc.forest.builder import make_forest, make_tree
    from forestc.forest.ir import Aggregate, Decision, Feature, Link
    from forestc.forest.numbers import Fixed

    n = 300
    trees = [
        make_tree(
            where="t", feature=[0, 0, -1, -1, -1], threshold=[k, k + 1, 0, 0, 0], left=[2, 3, -1, -1, -1],
            right=[1, 4, -1, -1, -1], values=[[0], [1], [0]], outputs=[k], quantized=True,
        )
        for k in range(n)
    ]  # fmt: skip
    forest = make_forest(
        name="many", features=[Feature("a", Fixed(9), 0)], columns=1, trees=trees, n_outputs=n, bias=[0] * n,
        aggregate=Aggregate(), link=Link(), decision=Decision("argmax"), classes=range(n), scale=1.0,
    )  # fmt: skip
    found = selftest_answers(forest, COptions(), ArrayRows(np.zeros((1, 1))))
    assert {label for (label,) in found.labels} == set(range(n)) and len(found.words) == n
