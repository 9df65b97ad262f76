"""Trains forests for the search. Some trainers take the prices of hardware into account."""

from forestc.training.base import Task, Trainer
from forestc.training.libraries import LIBRARIES
from forestc.training.priced import PricedTrainer

TRAINERS: dict[str, Trainer] = {trainer.name: trainer for trainer in (*LIBRARIES, PricedTrainer())}

__all__ = ["TRAINERS", "Task", "Trainer"]
