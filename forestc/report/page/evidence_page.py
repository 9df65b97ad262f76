"""Makes the page of evidence from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forestc.report.page.blocks import Block, Code, Page, Paragraph, Section, table
from forestc.report.tables import visible

LEAD = "What forestc checked of this design, and with what. Every figure is of one run of the command below."
ROLES = ("made by", "reviewed by", "released by")
_LINE = "_" * 24  # to write on


def evidence_page(record: Mapping[str, Any]) -> Page:
    """Returns the page of a record of evidence.json."""
    sections = [
        Section(part["name"], visible(part["title"]), tuple(_blocks(part)))
        for part in record["sections"]
    ]  # fmt: skip
    signed = f"A signature stands for evidence.json with the sum sha256 {record['sha256']}, which names all files."
    blank = [(role, _LINE, _LINE, _LINE) for role in ROLES]
    signatures = (Paragraph(signed), table("Signatures", ("role", "name", "date", "signature"), blank))
    repeat = Code(visible(record["command"]), "This command repeats every figure")
    verify = Code("forestc evidence --verify FOLDER --design DIR", "This command finds what changed since")
    first = Section("repeat", "How to repeat it", (repeat, verify))
    tools = table("Versions that --verify compares", ("tool", "version"), sorted(record["tools"].items()))
    files = table("Files of the design", ("file", "SHA-256"), list(record["files"].items()))
    return Page(
        "Evidence",
        visible(record["name"]),
        LEAD,
        (
            first,
            *sections,
            Section("tools", "Tools", (tools,)),
            Section("files", "Files", (files,)),
            Section("signatures", "Signatures", signatures),
        ),
    )


def _blocks(part: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = [Paragraph(visible(text)) for text in part["text"]]
    return [*blocks, table(visible(part["title"]), part["head"], part["rows"])] if part["rows"] else blocks
