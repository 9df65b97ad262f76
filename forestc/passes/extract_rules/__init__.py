"""The pass extract-rules, and the text form of its rules."""

from forestc.passes.extract_rules.rules_text import rules_text as rules_text
