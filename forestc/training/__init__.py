"""Trains forests for the search, some of them with the prices of hardware in mind."""

from forestc.training.base import Task, Trainer

TRAINERS: dict[str, Trainer] = {}

__all__ = ["TRAINERS", "Task", "Trainer"]
