"""Trains forests for the search, some of them with the prices of hardware in mind."""

from forestc.training.base import Task, Trainer
from forestc.training.libraries import LIBRARIES
from forestc.training.priced import PricedTrainer

TRAINERS: dict[str, Trainer] = {trainer.name: trainer for trainer in (*LIBRARIES, PricedTrainer())}

__all__ = ["TRAINERS", "Task", "Trainer"]
