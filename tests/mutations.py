"""Damages model files, and checks the result: a ForestcError or a valid forest, nothing else."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from forestc.errors import ForestcError, ModelError
from forestc.forest.text import print_forest
from forestc.forest.verify import verify
from forestc.frontends.shared.document import read_document
from forestc.frontends.shared.ubjson import parse_ubjson
from forestc.frontends.xgboost.reader import read_saved
from forestc.rows.encode import evaluate

INTERESTING = [0, -1, 1, 2, 255, 2**31 - 1, 2**31, -(2**31), 2**63, 1e308, -1e308, 0.5, None, True, "", "nan", "0"]
INTERESTING += [[], {}, [[]], float("nan"), float("inf"), "-1", "1e9", "[1,2]", [1, "a"], {"a": 1}]
WORDS = [b"9" * 30, b"-1", b"2147483648", b"nan", b" ", b"1e999", b"\n"]


def read_json(data, where):
    """Reads XGBoost's JSON, whatever its content says about its kind."""
    return read_saved(read_document(data, where), where)


def read_ubj(data, where):
    return read_saved(parse_ubjson(data, where), where)


def assert_refused(read, data, message, where="m.json"):
    """Asserts that the error contains each part of the message, names the file and fits one line."""
    with pytest.raises(ModelError) as caught:
        read(data, where)
    assert all(part in str(caught.value) for part in message.split("; ")), caught.value
    assert where in str(caught.value) and "\n" not in str(caught.value)


def reads_whole(read, data):
    """Reads damaged data; returns True if it was read, and asserts that the forest is valid."""
    try:
        forest = read(data, "fuzz")
    except ForestcError as error:
        assert str(error) and "\n" not in str(error)
        return False
    verify(forest)
    evaluate(forest, np.zeros((2, forest.columns)))
    assert print_forest(forest)
    return True


def mutated_bytes(data, source):
    """Flips, replaces, inserts, removes or doubles a few bytes."""
    data = bytearray(data)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(data))
        match source.randrange(6):
            case 0:
                data[place] ^= 1 << source.randrange(8)
            case 1:
                data[place] = source.choice(range(256))
            case 2:
                del data[place : place + source.randint(1, 20)]
            case 3:
                data[place:place] = data[source.randrange(len(data)) :][: source.randint(1, 20)]
            case 4:
                data[place:place] = source.choice(WORDS)
            case 5:
                del data[place:]
        if not data:
            return b""
    return bytes(data)


def changed(document, path, value):
    """Returns a JSON document as bytes with the value at a path replaced; the value KeyError drops the key."""
    root = place = copy.deepcopy(document)
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return json.dumps(root).encode()


def mutated_document(document, source):
    """Replaces, removes or doubles one or more values of a JSON document."""
    document = json.loads(json.dumps(document))
    for _ in range(source.randint(1, 3)):
        place = document
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not len(keys):
                break
            key = source.choice(list(keys))
            if isinstance(place[key], dict | list) and len(place[key]) and source.random() < 0.85:
                place = place[key]
                continue
            match source.randrange(3):
                case 0:
                    del place[key]
                case 2 if isinstance(place, list):
                    place.append(place[key])
                case _:
                    place[key] = json.loads(json.dumps(source.choice(INTERESTING)))
            break
    return json.dumps(document).encode()
