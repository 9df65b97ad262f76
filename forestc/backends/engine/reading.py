"""Reads and checks the files of a folder's engine and its image."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from forestc.backends.base import Written
from forestc.backends.engine.image_reader import ImageRead, ImageRefusedError, image_bytes, read_image
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, read_engine
from forestc.errors import ForestcError
from forestc.system.records import DamagedError, read_text, shown


def capacity_in(design: Written) -> Capacity:
    """Returns the capacity of a design's engine. Raises ForestcError if the folder has none."""
    design.path("engine")
    return Capacity.of(design.manifest["options"]["engine"])


def image_in(design: Written) -> ImageRead:
    """Decodes the image in a design's folder. Raises ForestcError if it is damaged or the engine refuses it."""
    data, content = engine_files(design)
    try:
        return read_image(data, content)
    except ImageRefusedError as error:
        raise ForestcError(error.what, where=str(design.path("engine_image")), do="compile again") from None


def engine_files(design: Written) -> tuple[bytes, dict[str, Any]]:
    """Returns a design's image as bytes and the content of its engine.json. Raises ForestcError if the files are
    damaged or do not belong to the design."""
    content = read_engine(design.path("engine_capacity"))
    own = asdict(capacity_in(design))
    for name, value in content["capacity"].items():
        if value != own[name]:
            what = f"{CAPACITY} and manifest.json do not belong together (capacity.{name} is {shown(value)})"
            raise ForestcError(what, where=str(design.folder), do="compile again")
    path = design.path("engine_image")
    try:
        return image_bytes(read_text(path)), content
    except DamagedError as fault:
        raise ForestcError(f"{path.name} is damaged (it {fault})", where=str(path.parent), do="compile again") from None
