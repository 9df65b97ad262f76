"""The client of the serial protocol: a design on a board as a predictor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import Inputs, fits
from forestc.boards.frames import FrameKind
from forestc.boards.link import TRIES, LostError, Parts, SerialLink
from forestc.boards.simulated import is_simulated, simulated_board
from forestc.boards.wires import PROTOCOL, WORD, Identity, Target, Wire, wire_of
from forestc.errors import BoardError, OptionError, RowsError, opt
from forestc.forest.evaluate import Evaluation, evaluation_of_scores
from forestc.manifest.design import Design, open_design
from forestc.manifest.fitted_estimator import FittedEstimator
from forestc.options.shared import BAUD
from forestc.rows.columns import numeric
from forestc.rows.encode import encode
from forestc.system.reading import file_bytes

TIMEOUT, TIMEOUT_OF_SIMULATION = 0.5, 10.0  # seconds
MOST_IMAGE = 1 << 28  # bytes of an image's file at most
LOADED, REFUSED = 1, 2
_PROGRAM = "program the board with the bitstream of this design, or give the folder of the board's design"


class Board(FittedEstimator):
    """A design on a board, and a fitted scikit-learn estimator that answers as the chip does.

    Requests whose answers do not come, or come damaged, are sent again. A board that changes its design or image, or is
    unplugged, raises an error. An object is for one thread.

    Parameters
    ----------
    port : str
        The serial port as the system names it, such as /dev/ttyUSB0 or COM3. `sim` simulates the board of `design` in
        Verilator; `sim:damaged=0.01,lost=0.001` damages and loses bytes.
    design : str, path or Design, optional
        The compiled design on the board, or its folder. Without it only `identity`, `load` and `exchange` work.
    baud : int, default=115200
        Bits a second on the line.
    timeout : float, optional
        Seconds without an answer after which a request is sent again, at most. Default: 0.5.

    Raises
    ------
    BoardError
        If the port can't be opened, no board answers, or it has another design.
    MissingExtraError
        If pyserial is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> with forestc.Board("sim", "iris") as board:
    ...     board.predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    def __init__(self, port: str, design: Any = None, baud: int = BAUD, timeout: float | None = None) -> None:
        self.design: Design | None = open_design(design) if isinstance(design, str | Path) else design
        if self.design is not None:
            self.model, self.forest = self.design.model, self.design.forest
        self._name, self._wire = port, None
        with ExitStack() as stack:
            path = port
            if simulated := is_simulated(port):
                path = stack.enter_context(simulated_board(port, self._needed()))
            usual = TIMEOUT_OF_SIMULATION if simulated else TIMEOUT
            self._link = SerialLink(path, baud, usual if timeout is None else timeout)
            stack.callback(self._link.close)
            self._identity = self._identify()
            if self.design is not None:
                self._wire = self._checked_wire(self.design)
            self._open = stack.pop_all()

    def __repr__(self) -> str:
        return f"<Board at {self._name!r}: {Target(self._identity.target).name.lower()}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the port, and ends a simulated board."""
        self._open.close()

    @property
    def identity(self) -> Identity:
        """What the board said of itself: `target`, `design`, `image`, and the bytes of rows and results."""
        return self._identity

    @property
    def raw(self) -> Inputs | None:
        """The types of raw rows; None if the board takes words."""
        return self._needed_wire().raw

    @property
    def resends(self) -> int:
        """The number of requests that were sent again."""
        return self._link.resends

    @property
    def predict_proba(self) -> Callable[[Any], Any]:
        """The method that returns probabilities (rows, classes); for several targets a list of arrays.

        Raises
        ------
        AttributeError
            If the design gives no scores, or the model's scores are not probabilities.
        """
        self._need_scores()
        return super().predict_proba

    @property
    def decision_function(self) -> Callable[[Any], NDArray[np.float64]]:
        """The method that returns margins (rows,) or scores (rows, classes), in the model's units.

        Raises
        ------
        AttributeError
            If the design gives no scores, the model is a regression, or it has several targets.
        """
        self._need_scores()
        return super().decision_function

    def results(self, words: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the board's results for words of the design.

        Parameters
        ----------
        words : array of shape (rows, features)
            Words, from `Design.quantize`; raw rows, as floats, for C that takes them (`c_inputs`).

        Returns
        -------
        int64 array of shape (rows, results)
            Results in the order of the manifest's outputs; of an engine the label and its scores.

        Raises
        ------
        OptionError
            If the board was opened without its design.
        BoardError
            If the board fails, or has another image than the design's.
        """
        wire = self._needed_wire()
        if wire.image is not None and self._identity.image != int(wire.image[-1]):
            raise BoardError("the engine has another image than the design's", where=self._name, do="call load() first")
        return wire.results(self.exchange(wire.rows(words)))

    def exchange(self, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Sends packed rows and returns packed results.

        Parameters
        ----------
        rows : uint8 array of shape (rows, bytes)
            Rows, as `Design.pack` makes them for a core.

        Returns
        -------
        uint8 array of shape (rows, bytes)
            The result of each row.

        Raises
        ------
        RowsError
            If rows have another number of bytes than the board's.
        BoardError
            If the board fails, or changed meanwhile.
        """
        identity, rows = self._identity, np.ascontiguousarray(rows, dtype=np.uint8)
        if rows.ndim != 2 or rows.shape[1] != identity.row:
            raise RowsError(f"packed rows have shape {rows.shape}", where="rows", do=f"give (rows, {identity.row})")
        results = np.empty((len(rows), identity.result), dtype=np.uint8)

        def take(start: int, stop: int, answer: bytes) -> bool:
            if len(answer) != (stop - start) * identity.result:
                return False
            results[start:stop] = np.frombuffer(answer, dtype=np.uint8).reshape(stop - start, identity.result)
            return True

        most = identity.most // max(identity.row, identity.result)
        parts = Parts(len(rows), most, lambda start, stop: rows[start:stop].tobytes(), take)
        self._link.run(FrameKind.ROWS, parts, identity.window)
        if self._identify() != identity:  # A bitstream or an image was loaded while rows were under way.
            raise BoardError("the board changed while it answered", where=self._name, do="open the board again")
        return results

    def load(self, image: str | Path | bytes | None = None) -> None:
        """Loads an image into an engine.

        Parameters
        ----------
        image : str, path or bytes, optional
            The image, or a file that `make_image` wrote. Default: the image of the design.

        Raises
        ------
        OptionError
            If no image is given and the board was opened without its design, or the board has no engine.
        BoardError
            If the engine refuses the image, or the board fails.
        """
        if self._identity.target != Target.ENGINE:
            raise OptionError("the board has no engine, and takes no image", where=self._name, do="omit load()")
        if image is None:
            words = self._needed_wire().image
            data = b"" if words is None else words.astype("<u4").tobytes()
        else:
            data = image if isinstance(image, bytes) else file_bytes(Path(image), OptionError, MOST_IMAGE)
        state = self._load(data)
        self._identity = self._identify()
        if state != LOADED or self._identity.image != int.from_bytes(data[-4:], "little"):
            raise BoardError(
                "the engine refused the image", where=self._name, do="give an image for an engine of its capacity"
            )

    def _load(self, data: bytes) -> int:
        """Sends an image in chunks, smaller ones after losses. Returns the board's state. Raises BoardError after
        `TRIES` chunks with which the image did not go on."""
        most = size = (self._identity.most - WORD) // WORD * WORD
        at = furthest = tries = 0
        while True:
            offset = (at // WORD).to_bytes(WORD, "little")
            try:
                answer = self._link.ask(FrameKind.LOAD, offset + data[at : at + size], tries=1)
            except LostError:
                if (tries := tries + 1) == TRIES:
                    raise
                size = max(WORD, size // 8 * 4)
                continue
            size = min(most, size + size // 32 * 4 + 4)
            at, state = WORD * int.from_bytes(answer[:WORD], "little"), answer[-1] if len(answer) == 5 else REFUSED
            if state in (LOADED, REFUSED) or at >= len(data):
                return state
            furthest, tries = max(furthest, at), 0 if at > furthest else tries + 1
            if tries == TRIES:
                return REFUSED

    def _evaluated(self, X: Any) -> Evaluation:
        forest, wire = self._needed().forest, self._needed_wire()
        if wire.raw is None:
            given = encode(forest, X)
        elif not fits(forest, wire.raw.types, given := numeric(forest, X)).all():
            raise RowsError("a value is not of the C type of its column", where="X", do=f"give values of {opt.c_types}")
        results, kinds = self.results(given), np.array([field.port.kind for field in wire.fields])
        index, scores = results[:, kinds == "label"], results[:, kinds == "score"][:, : forest.n_scores]
        if not forest.decides or not index.shape[1]:
            return evaluation_of_scores(forest, scores)
        labels = []
        for column, part in zip(index.T, forest.targets, strict=True):
            if (column >= len(part.classes)).any():
                raise BoardError("the board gave a label that is no class", where=self._name, do=_PROGRAM)
            labels.append(np.asarray(part.classes)[column])
        leaves = np.empty((len(index), 0), dtype=np.int32)
        values = evaluation_of_scores(forest, scores).values if scores.shape[1] else scores
        if len(labels) == 1:
            return Evaluation(leaves, scores, values, labels[0], index[:, 0])
        return Evaluation(leaves, scores, values, np.stack(labels, axis=1), index)

    def _identify(self) -> Identity:
        payload = self._link.ask(FrameKind.IDENTIFY)
        if (identity := Identity.of(payload)) is None:
            what = f"the board does not speak version {PROTOCOL} of the protocol"
            raise BoardError(what, where=self._name, do="program it with a bitstream of this version of forestc")
        return identity

    def _checked_wire(self, design: Design) -> Wire:
        """Returns how the design's rows travel. Raises BoardError if the board has another design."""
        said = self._identity
        wire = wire_of(design, Target(said.target))
        if said.design != wire.design:
            what = f"the board has the design {said.design.hex()}, and the folder has {wire.design.hex()}"
            raise BoardError(what, where=self._name, do=_PROGRAM)
        if (said.row, said.result) != (wire.row, wire.result):
            what = f"the board takes {said.row} bytes a row and gives {said.result}, not {wire.row} and {wire.result}"
            raise BoardError(what, where=self._name, do=_PROGRAM)
        return wire

    def _needed(self) -> Design:
        if self.design is None:
            raise OptionError("no design is given", where="Board", do="give the compiled folder: Board(port, design)")
        return self.design

    def _needed_wire(self) -> Wire:
        self._needed()
        assert self._wire is not None
        return self._wire

    def _need_scores(self) -> None:
        if self._wire is None or not any(field.port.kind == "score" for field in self._wire.fields):
            raise AttributeError("the design on the board gives no scores: compile with outputs='both'")
