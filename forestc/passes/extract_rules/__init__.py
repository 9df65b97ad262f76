"""The pass extract-rules, and its rules as text."""

from forestc.passes.extract_rules.rules_text import rules_text as rules_text
