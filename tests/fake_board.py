"""A board in Python on a pseudo-terminal: the serial protocol again, without code of forestc, with faults to inject."""

from __future__ import annotations

import os
import pty
import select
import threading
import tty
from collections.abc import Callable, Sequence

from forestc.forest.evaluate import evaluate_words

IDENTIFY, ROWS, LOAD, PROBLEM = 1, 2, 3, 0x7F


def crc32(data: bytes) -> int:
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xEDB88320 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def on_the_line(kind: int, sequence: int, payload: bytes) -> bytes:
    body = [kind, sequence & 255, sequence >> 8, len(payload) & 255, len(payload) >> 8, *payload]
    crc = crc32(bytes(body))
    line = [0x7E]
    for byte in [*body, *(crc >> shift & 255 for shift in (0, 8, 16, 24))]:
        line += [0x7D, byte ^ 0x20] if byte in (0x7D, 0x7E) else [byte]
    return bytes([*line, 0x7E])


def number(data: bytes) -> int:
    return sum(byte << 8 * place for place, byte in enumerate(data))


def spread(value: int, size: int) -> bytes:
    return bytes(value >> 8 * place & 255 for place in range(size))


class FakeBoard:
    """Answers requests in a thread, as `answer` (bytes of a row -> bytes of a result) does.

    fault: takes the count of answers before and the bytes of an answer; returns the bytes to send in its place.
    """

    def __init__(
        self,
        answer: Callable[[bytes], bytes],
        row: int,
        result: int,
        design: bytes,
        *,
        target: int = 1,
        window: int = 4,
        most: int = 64,
        version: int = 1,
        fault: Callable[[int, bytes], bytes] = lambda count, line: line,
    ) -> None:
        self.answer, self.row, self.result, self.design = answer, row, result, design
        self.target, self.window, self.most, self.version, self.fault = target, window, most, version, fault
        self.answers, self.image, self.words, self.next = 0, 0, [], 0
        self.end, self.user = pty.openpty()
        tty.setraw(self.user)
        self.port = os.ttyname(self.user)
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> FakeBoard:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()
        self.thread.join()

    def unplug(self) -> None:
        """Closes both ends: the client's port fails."""
        if not self.ends.is_set():
            self.ends.set()
            os.close(self.user)
            if threading.current_thread() is not self.thread:
                self.thread.join()
            os.close(self.end)

    def send(self, line: bytes) -> None:
        os.write(self.end, line)

    def _run(self) -> None:
        held, escaped, started = [], False, False
        while not self.ends.is_set():
            if not select.select([self.end], [], [], 0.01)[0]:
                continue
            try:
                data = os.read(self.end, 4096)
            except OSError:
                return
            for byte in data:
                if byte == 0x7E:
                    if started and len(held) >= 9 and not escaped:
                        self._take(bytes(held))
                    held, escaped, started = [], False, True
                elif byte == 0x7D:
                    escaped = True
                else:
                    held.append(byte ^ 0x20 if escaped else byte)
                    escaped = False

    def _take(self, frame: bytes) -> None:
        body, crc = frame[:-4], number(frame[-4:])
        kind, sequence, length, payload = body[0], number(body[1:3]), number(body[3:5]), body[5:]
        if crc32(body) != crc or length != len(payload) or length > self.most:
            return
        kind, payload = self._answered(kind, payload)
        line = self.fault(self.answers, on_the_line(kind | 0x80, sequence, payload))
        self.answers += 1
        if not self.ends.is_set():
            self.send(line)

    def _answered(self, kind: int, payload: bytes) -> tuple[int, bytes]:
        if kind == IDENTIFY:
            head = bytes([self.version, self.target, self.window, 0])
            sizes = spread(self.most, 2) + spread(self.row, 2) + spread(self.result, 2)
            return kind, head + sizes + self.design + spread(self.image, 4)
        if kind == LOAD and self.target == 2:
            return kind, self._load(payload)
        if kind != ROWS:
            return PROBLEM, bytes([3])
        if len(payload) % self.row:
            return PROBLEM, bytes([1])
        if self.target == 2 and not self.image:
            return PROBLEM, bytes([2])
        rows = [payload[start : start + self.row] for start in range(0, len(payload), self.row)]
        return kind, b"".join(map(self.answer, rows))

    def _load(self, payload: bytes) -> bytes:
        """Takes a chunk of an image. Its fourth word is its length, its last word the CRC-32 of the others."""
        offset, state = number(payload[:4]), 0
        if offset == 0:
            self.words, self.next = [], 0
        if offset == self.next:
            self.words += [payload[start : start + 4] for start in range(4, len(payload), 4)]
            self.next = len(self.words)
        if len(self.words) > 3 and self.next >= number(self.words[3]):
            right = crc32(b"".join(self.words[:-1])) == number(self.words[-1])
            state, self.image = (1, number(self.words[-1])) if right else (2, self.image)
        return spread(self.next, 4) + bytes([state])


def answers_of(design) -> tuple[Callable[[bytes], bytes], int, int]:
    """Returns a design's answer to a packed row, and the bytes of rows and results, all by its manifest."""
    features, outputs = design.manifest["features"], design.manifest["outputs"]
    row, result = (max(1, -(-max(f["offset"] + f["bits"] for f in fields) // 8)) for fields in (features, outputs))

    def answer(packed: bytes) -> bytes:
        bits, words = number(packed), []
        for feature in features:
            word = bits >> feature["offset"] & ((1 << feature["bits"]) - 1)
            words.append(word - (1 << feature["bits"]) if feature["signed"] and word >> feature["bits"] - 1 else word)
        said, packed_result = evaluated(design.forest, words), 0
        for output in outputs:
            packed_result |= (said[output["name"]] & ((1 << output["bits"]) - 1)) << output["offset"]
        return spread(packed_result, result)

    return answer, row, result


def evaluated(forest, words: Sequence[int]) -> dict[str, int]:
    import numpy as np

    evaluation = evaluate_words(forest, np.array([words], dtype=np.int64))
    scores = {f"score{index}": int(score) for index, score in enumerate(evaluation.scores[0])}
    index = evaluation.index.ravel()
    return {"label": int(index[0]), **{f"label{k}": int(label) for k, label in enumerate(index)}, **scores}
