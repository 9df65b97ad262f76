"""Tests the folder `c` as a component of ESPHome and of ESP-IDF, and with the tools that pack it for registries."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from models import rows_near_thresholds, trained
from random_forests import random_forest
from sklearn.tree import DecisionTreeClassifier
from thinned import only

import forestc
from forestc.backends.c import header, project
from forestc.backends.c.options import COptions
from forestc.backends.names import feature_name, identifier
from forestc.backends.vectors import vectors
from forestc.checks.bench import selftest_answers
from forestc.forest.evaluate import encode_numbers, evaluate_words
from forestc.rows.batches import ArrayRows
from forestc.toolchain.compilers import STRICT, cxx_compiler

WARNINGS = [flag for flag in STRICT if not flag.startswith("-std")]
# The parts of ESPHome that the component calls, for compilers alone.
STUBS = {
    "components/sensor/sensor.h": """
#pragma once
namespace esphome { namespace sensor {
struct Sensor {
    float state = 0; bool known = false;
    bool has_state() const { return known; }
    void publish_state(float value) { state = value; known = true; }
};
} }
""",
    "components/text_sensor/text_sensor.h": """
#pragma once
#include <string>
namespace esphome { namespace text_sensor {
struct TextSensor { std::string state; void publish_state(const std::string &text) { state = text; } };
} }
""",
    "core/component.h": """
#pragma once
namespace esphome {
struct PollingComponent {
    virtual ~PollingComponent() {} virtual void setup() {} virtual void update() {} void mark_failed() {}
};
}
""",
    "core/log.h": """
#pragma once
#include <cstdio>
#define ESP_LOGE(tag, ...) (printf(__VA_ARGS__), printf("\\n"))
#define ESP_LOGI ESP_LOGE
""",
}
# Publishes rows of float32 from the standard input, and writes what the component publishes.
DRIVE = """
#pragma once
#include <cstdio>
#include <vector>
#include "esphome/components/sensor/sensor.h"
#include "esphome/components/text_sensor/text_sensor.h"
#include "esphome/core/component.h"
inline void drive(esphome::PollingComponent *forest, std::vector<esphome::sensor::Sensor *> inputs,
                  std::vector<esphome::text_sensor::TextSensor *> labels,
                  std::vector<esphome::sensor::Sensor *> numbers) {
    std::vector<float> row(inputs.size());
    while (fread(row.data(), 4, row.size(), stdin) == row.size()) {
        for (size_t k = 0; k < row.size(); k++)
            inputs[k]->publish_state(row[k]);
        forest->update();
        for (auto *label : labels) {
            for (char byte : label->state)
                fprintf(stderr, "%02x", byte & 255);
            fprintf(stderr, "| ");
        }
        for (auto *number : numbers)
            fprintf(stderr, "%.9g ", static_cast<double>(number->state));
        fprintf(stderr, "\\n");
    }
}
"""


def run(command, folder, **more):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def module_of(folder: Path) -> dict[str, list[str]]:
    """Returns the names of a component's inputs and outputs, as its Python lists them."""
    found = {}
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "INPUTS":
            found["inputs"] = ast.literal_eval(node.value)
        elif isinstance(node, ast.Assign) and node.targets[0].id == "OUTPUTS":
            keys = [key.value for key in node.value.keys]
            found["labels"] = [key for key in keys if key.startswith("label")]
            found["numbers"] = [key for key in keys if not key.startswith("label")]
    return found


def published(folder: Path, prefix: str, rows: np.ndarray, program: Path | None = None) -> tuple[list, np.ndarray]:
    """Returns the labels (rows, targets) and numbers (rows, numbers) that a component publishes for states of sensors:
    (rows, inputs), float32. program: built with ESPHome; None builds one with the stubs."""
    names = module_of(folder)
    if program is None:
        program = folder / "driven"
        for path, text in {f"esphome/{path}": text for path, text in STUBS.items()}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "drive.h").write_text(DRIVE)
        lists = {kind: [f"{kind}[{k}]" for k in range(len(names[kind]))] for kind in names}
        setters = [(f"set_input({k}, ", f"&inputs[{k}]") for k in range(len(names["inputs"]))]
        setters += [(f"set_label({k}, ", f"&labels[{k}]") for k in range(len(names["labels"]))]
        scores = sum(name.startswith("score") for name in names["numbers"])
        setters += [
            (f"set_score({k}, " if k < scores else f"set_value({k - scores}, ", f"&numbers[{k}]")
            for k in range(len(names["numbers"]))
        ]
        body = "".join(f"forest.{call}{argument});\n" for call, argument in setters)
        pointers = ", ".join("{" + ", ".join(f"&{item}" for item in lists[kind]) + "}" for kind in names)
        sizes = {kind: len(names[kind]) + 1 for kind in names}
        (folder / "main.cpp").write_text(
            f'#include "{prefix}_esphome.h"\n#include "drive.h"\nint main() {{\nusing namespace esphome;\n'
            f"static sensor::Sensor inputs[{sizes['inputs']}], numbers[{sizes['numbers']}];\n"
            f"static text_sensor::TextSensor labels[{sizes['labels']}];\nstatic forestc_{prefix}::Forest forest;\n"
            f"{body}forest.set_selftest({prefix}_selftest);\nforest.setup();\ndrive(&forest, {pointers});\n}}\n"
        )
        run([cxx_compiler(), "-std=c++20", *WARNINGS, "-I.", "main.cpp", "-o", str(program)], folder)
    done = subprocess.run([program], input=rows.astype("<f4").tobytes(), capture_output=True, check=True)
    assert b"rows of the self-test are right" in done.stdout, done.stdout
    lines = done.stderr.decode().splitlines()
    cells = [line.split() for line in lines]
    count = len(names["labels"])
    labels = [[bytes.fromhex(cell.rstrip("|")).decode() for cell in row[:count]] for row in cells]
    return labels, np.array([[float(cell) for cell in row[count:]] for row in cells], dtype=np.float64)


def assert_equal(forest, words, labels, numbers):
    """Asserts that labels and scores are the evaluator's for words: (rows, features)."""
    expected = evaluate_words(forest, words)
    scores = expected.scores.reshape(len(words), -1)
    assert np.array_equal(numbers[:, : scores.shape[1]], scores.astype(np.float32))
    if forest.decides:
        index = expected.index.reshape(len(words), -1)
        assert labels == [[str(forest.targets[t].classes[k]) for t, k in enumerate(row)] for row in index.tolist()]


KINDS = ("forest-text-labels", "forest-missing", "xgboost-multi", "boosting-regression")
FORMS = ({}, {"c_inputs": "struct"}, {"c_inputs": "float"}, {"c_quantizer": "double", "c_values": "float"})


@pytest.mark.parametrize(("kind", "form"), only([(kind, form) for kind in KINDS for form in FORMS], 0, 5, 10, 15))
def test_it_publishes_what_the_evaluator_gives(kind, form, tmp_path):
    model, X, y = trained(kind)
    options = {"label": y, "targets": "c", "name": "m", "c_project": "esphome", **form}
    made = forestc.compile(model, X, tmp_path / "out", **options).design
    forest = made.forest
    rows = rows_near_thresholds(forest, X, 400).astype(np.float64)
    states = rows[:, list(forest.row_columns)]
    labels, numbers = published(made.folder / "c", "m", states)
    assert_equal(forest, made.quantize(rows), labels, numbers)
    shown = numbers[:, forest.n_scores :]
    right = made.predict_proba(rows) if forest.decides else np.asarray(made.predict(rows)).reshape(len(rows), -1)
    assert shown.shape == right.shape
    assert np.allclose(shown, right, rtol=2.0**-23, atol=2.0**-23)  # a sensor's state is a float32


@pytest.mark.parametrize("seed", only(range(24), 0, 1, 2))
@pytest.mark.parametrize("form", ["words", "struct", "none"])
def test_random_forests(seed, form, tmp_path):
    forest = random_forest(seed, True)
    more = {"c_inputs": form} if form != "none" else {"c_quantizer": "none"}
    options, zeros = COptions(c_project="esphome", **more), ArrayRows(np.zeros((2, forest.width)))
    files = project.emit(forest, options, selftest_answers(forest, options, zeros), "00" * 32)
    for name, text in [*header.emit(forest, options).items(), *files.values()]:
        (tmp_path / name).write_text(text)
    given = np.concatenate([some.raw for some in vectors(forest, zeros, 200, 0, 200)])
    rows = given.astype(np.float32).astype(np.float64)
    words = encode_numbers(forest, rows)
    states = rows[:, list(forest.row_columns)]
    if form == "none":
        small = (np.abs(words) < 2**24).all(axis=1)  # a sensor's state is a float32
        words, states = words[small], words[small]
    else:
        known = np.array([f.missing for f in forest.features]) | ~np.isnan(states)
        words, states = words[known.all(axis=1)], states[known.all(axis=1)]
    labels, numbers = published(tmp_path, identifier(forest.name), states)
    assert_equal(forest, words, labels, numbers)


def test_whole_columns_round_and_saturate_and_nan_is_unknown(tmp_path):
    random = np.random.default_rng(0)
    X = random.integers(-120, 120, (300, 2)).astype(float)
    model = DecisionTreeClassifier(random_state=0).fit(X, np.where(X[:, 0] > X[:, 1], "more", "less"))
    options = {"c_inputs": "raw", "c_types": "*=int8", "targets": "c", "name": "m", "c_project": "esphome"}
    made = forestc.compile(model, X, tmp_path / "out", **options).design
    states = np.array([[2.5, -2.5], [-1e9, 3e38], [np.inf, 126.6], [0.4, -0.4], [np.nan, 1], [5, 4]])
    columns = np.clip(np.sign(states) * np.floor(np.abs(states) + 0.5), -128, 127)
    known = ~np.isnan(states).any(axis=1)
    labels, numbers = published(made.folder / "c", "m", states)
    assert labels[4] == [""] and np.isnan(numbers[4]).all()
    labels = [label for label, fine in zip(labels, known, strict=True) if fine]
    assert_equal(made.forest, made.quantize(columns[known]), labels, numbers[known])


HOSTILE = ('"; rm -rf / #', "a: b\n- {c}", "'''\"\"\"", "\\", "${x}")


def test_names_of_any_kind_leave_the_files_valid(tmp_path, need_tool):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, len(HOSTILE))), columns=HOSTILE)
    y = np.array(HOSTILE)[np.argmax(X.to_numpy(), axis=1)]
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    made = forestc.compile(
        model, X, tmp_path / "out", label=y, targets="c", name='x"""\n: \\ ${y}', c_project="all"
    ).design
    folder, prefix = made.folder / "c", made.path("c").stem
    names = module_of(folder)
    assert names["inputs"] == [feature_name(i, f.name) for i, f in enumerate(made.forest.features)]
    assert all(name.isidentifier() for name in [*names["inputs"], *names["labels"], *names["numbers"]])
    example = yaml.safe_load(ast.get_docstring(ast.parse((folder / "__init__.py").read_text())).split("\n\n", 2)[2])
    assert list(example[f"forestc_{prefix}"]["inputs"]) == names["inputs"]
    component = yaml.safe_load((folder / "idf_component.yml").read_text())
    assert set(component) == {"version", "description", "maintainers", "tags", "dependencies"}
    assert component["version"] == "1.0.0" and prefix in component["description"]
    assert yaml.safe_load((folder / "zephyr" / "module.yml").read_text())["name"] == prefix
    assert json.loads((folder / "library.json").read_text())["authors"] == [{"name": "forestc", "maintainer": True}]
    fields = [line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines()]
    asked = ["name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"]
    assert set(asked) <= {key for key, _ in fields} and len(fields) == len(dict(fields))
    labels, numbers = published(folder, prefix, X.to_numpy()[:, list(made.forest.row_columns)])
    assert_equal(made.forest, made.quantize(X.to_numpy().astype(np.float32)), labels, numbers)


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """Compiles a model of three named classes."""
    model, X, y = trained("forest-text-labels")
    folder = tmp_path_factory.mktemp("component") / "out"
    return forestc.compile(model, X, folder, label=y, targets="c", name="iris", c_project="all").design


def test_esp_idf_gets_its_include_directory(iris, need_tool, tmp_path):
    need_tool("cmake")
    # This imitates ESP-IDF, which adds the component's folder with its own functions.
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nset(ESP_PLATFORM 1)\n"
        'function(idf_component_register)\n  message(STATUS "registered: ${ARGV}")\nendfunction()\n'
        f'add_subdirectory("{iris.folder / "c"}" c)\nif(TARGET forestc_iris)\n  message(FATAL_ERROR two)\nendif()\n'
    )
    assert "registered: INCLUDE_DIRS;.\n" in run(["cmake", "-B", "build"], tmp_path).stdout


def test_cmake_finds_it_installed(iris, need_tool, tmp_path):
    need_tool("cmake")
    run(["cmake", "-S", str(iris.folder / "c"), "-B", "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/there"], tmp_path)
    run(["cmake", "--build", "build", "--target", "install"], tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nfind_package(forestc_iris REQUIRED)\n"
        "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE forestc::iris)\n"
    )
    (tmp_path / "main.c").write_text("#include <iris_selftest.h>\nint main(void) { return iris_selftest() + 1; }\n")
    run(["cmake", "-B", "app", f"-DCMAKE_PREFIX_PATH={tmp_path}/there"], tmp_path)
    run(["cmake", "--build", "app"], tmp_path)
    run([str(tmp_path / "app" / "app")], tmp_path)


def packed(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.removeprefix("./") for name in archive.getnames()}


def test_registries_tools_pack_it(iris, need_tool, tmp_path):
    need_tool("compote")
    need_tool("pio")
    own = {**os.environ, "HOME": str(tmp_path), "PLATFORMIO_CORE_DIR": str(tmp_path / "pio")}
    folder = str(iris.folder / "c")
    place = ["--project-dir", folder, "--dest-dir", str(tmp_path)]
    run(["compote", "component", "pack", "--name", "forestc_iris", *place], tmp_path, env=own)
    assert {"iris.h", "CMakeLists.txt", "idf_component.yml"} <= packed(tmp_path / "forestc_iris_1.0.0.tgz")
    run(["pio", "pkg", "pack", folder, "-o", str(tmp_path / "pio.tar.gz")], tmp_path, env=own)
    assert {"iris.h", "library.json", "examples/iris/iris.ino"} <= packed(tmp_path / "pio.tar.gz")


def test_kconfiglib_reads_zephyrs_option(iris, need_tool, tmp_path):
    need_tool("allyesconfig")
    run(["allyesconfig", str(iris.folder / "c" / "zephyr" / "Kconfig")], tmp_path)
    assert "CONFIG_FORESTC_IRIS=y\n" in (tmp_path / ".config").read_text()


FLAGS = ["-DUSE_HOST", "-DESPHOME_LOG_LEVEL=ESPHOME_LOG_LEVEL_INFO", "-fno-exceptions", "-std=gnu++20", "-Isrc"]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "form"), [(KINDS[0], "words"), (KINDS[1], "float"), (KINDS[3], "struct")])
def test_esphome_takes_it_and_its_host_build_answers_as_the_evaluator(kind, form, need_tool, tmp_path):
    need_tool("esphome")
    model, X, y = trained(kind)
    options = {"label": y, "targets": "c", "name": "Iris_9", "c_project": "esphome", "c_inputs": form}
    made = forestc.compile(model, X, tmp_path / "out", **options).design
    (tmp_path / "components").mkdir()
    run(["cp", "-r", str(made.folder / "c"), "components/forestc_Iris_9"], tmp_path)
    names = module_of(made.folder / "c")
    numbers = "{" + ", ".join(f"id({name})" for name in names["numbers"]) + "}"
    labels = "{" + ", ".join(f"id({name})" for name in names["labels"]) + "}"
    inputs = "{" + ", ".join(f"id(s{k})" for k in range(len(names["inputs"]))) + "}"
    drive = f"drive(id(forest), {inputs}, {labels}, {numbers}); exit(0);"
    config = {
        "esphome": {
            "name": "example",
            "includes": ["drive.h"],
            "on_boot": {"priority": -100, "then": [{"lambda": drive}]},
        },
        "host": None,
        "logger": {"level": "INFO"},
        "external_components": [{"source": "components"}],
        "sensor": [{"platform": "template", "id": f"s{k}"} for k in range(len(names["inputs"]))],
        "forestc_Iris_9": {
            "id": "forest",
            "inputs": {name: f"s{k}" for k, name in enumerate(names["inputs"])},
            **{name: {"name": name, "id": name} for name in names["labels"] + names["numbers"]},
            "selftest": True,
        },
    }
    (tmp_path / "drive.h").write_text(DRIVE)
    (tmp_path / "example.yaml").write_text(yaml.safe_dump(config))
    run(["esphome", "config", "example.yaml"], tmp_path)
    run(["esphome", "compile", "--only-generate", "example.yaml"], tmp_path)
    place = tmp_path / ".esphome" / "build" / "example"
    sources = [str(path) for path in (place / "src").rglob("*.cpp")]
    run([cxx_compiler(), *FLAGS, *sources, "-o", "program", "-pthread"], place)
    rows = rows_near_thresholds(made.forest, X, 300).astype(np.float64)
    states = rows[:, list(made.forest.row_columns)]
    texts, given = published(made.folder / "c", "Iris_9", states, place / "program")
    assert_equal(made.forest, made.quantize(rows), texts, given)
