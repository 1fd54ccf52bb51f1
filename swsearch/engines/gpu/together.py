"""Queries that several devices score with a chunk together: what each is given, and what they found put together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np

from swsearch.blocks import LANES
from swsearch.engines.base import Candidates, Pending, Progress, QueryGroup, ScoreArray, Thresholds
from swsearch.engines.gpu.division import DevicePiece, cut
from swsearch.engines.gpu.engine import GpuEngine
from swsearch.engines.gpu.fleet import WAIT_SECONDS, Fleet, Held, Whole
from swsearch.engines.gpu.variants import device_kind
from swsearch.engines.gpu.worker import Looked, ScanPart
from swsearch.errors import EngineError


class Scan:
    """A chunk that queries are scored with on all devices, begun at once.

    It begins again where the devices lost what they held.

    Parameters
    ----------
    fleet : Fleet
        The devices.
    group : QueryGroup
        The queries; its handle has what the engines made of them, by the highest strip that suits a device.
    subjects : Held or Whole
        The chunk.
    thresholds : Thresholds or None
        What is a hit; None for all scores.
    progress : callable, optional
        Called from the thread that waits.
    """

    def __init__(
        self,
        fleet: Fleet,
        group: QueryGroup,
        subjects: Held | Whole,
        thresholds: Thresholds | None,
        progress: Progress | None,
    ) -> None:
        self.thresholds = thresholds
        self._fleet, self._group, self._subjects, self._progress = fleet, group, subjects, progress
        self._guard = threading.Lock()
        self._found: list[tuple[DevicePiece, Looked]] = []
        self._error: BaseException | None = None
        self._attempt = self._left = self._cells = self._told = 0
        self._turn = -1
        self._coming: Iterator[DevicePiece] | None = None
        fleet.attend()
        if isinstance(subjects, Whole):
            fleet.balance()
        self._start()

    # for the devices' threads

    def group_for(self, engine: GpuEngine) -> QueryGroup:
        """See `Asker.group_for`."""
        group: QueryGroup = self._group.handle[device_kind(engine.info.capability)]
        return group

    def count(self, task: ScanPart, cells: int) -> None:
        """See `Asker.count`."""
        with self._guard:
            task.cells += cells
            if task.turn == self._attempt:
                self._cells += cells

    def take(self, task: ScanPart, found: Looked) -> None:
        """See `Asker.take`."""
        with self._guard:
            if task.turn == self._attempt:
                task.piece.source = None
                self._found.append((task.piece, found))
                self._left -= 1

    def fail(self, error: BaseException) -> None:
        """See `Asker.fail`."""
        with self._guard:
            self._error = error

    # for the job's thread

    def _start(self) -> None:
        """Give the devices their work, all of it or what is not read again first."""
        with self._guard:
            self._attempt += 1
            self._found, self._cells, self._left = [], 0, 0
        self._turn, self._coming = self._fleet.turn, None
        subjects = self._subjects
        if subjects.pieces:
            with self._guard:
                self._left = len(subjects.pieces)
            for worker, piece in subjects.pieces:
                worker.give(ScanPart(self, piece, self._attempt))
        elif isinstance(subjects, Held) and subjects.source is not None:
            self._post(list(cut(subjects.source, self._piece_bytes(subjects.source.residues.nbytes))))
        else:
            self._coming = self._read_again()

    def _piece_bytes(self, n_bytes: int) -> int:
        """Return the most bytes of a piece; where all scores are wanted, one chunk is for all devices."""
        fleet = self._fleet
        return min(fleet.piece_bytes(), n_bytes if self.thresholds else -(-n_bytes // len(fleet.used)))

    def _post(self, pieces: Sequence[DevicePiece]) -> None:
        """Leave pieces to whichever device is free."""
        with self._guard:
            self._left += len(pieces)
        with self._fleet.board.changed:
            self._fleet.board.tasks.extend(ScanPart(self, piece, self._attempt) for piece in pieces)
            self._fleet.board.changed.notify_all()

    def _read_again(self) -> Iterator[DevicePiece]:
        """Read chunks once more of which nothing stays anywhere."""
        begins = {held.number: begin for held, begin in self._subjects.parts}
        fleet = self._fleet
        if fleet.again is None:
            raise EngineError("chunks were lost with a device and cannot be read again; please report it")
        last = max(begins)
        for number, chunk in enumerate(fleet.again()):
            if number in begins:
                for piece in cut(chunk, self._piece_bytes(chunk.residues.nbytes)):
                    piece.firsts = piece.firsts + begins[number]
                    yield piece
            if number == last:
                return

    def is_ready(self) -> bool:
        """Do what there is to be done meanwhile, and say whether everything was found."""
        self._fleet.attend()
        if self._error is not None:
            raise self._error
        if (self._left or self._coming) and self._turn != self._fleet.turn:
            self._start()
        while self._coming is not None and self._left < self._fleet.in_flight:
            piece = next(self._coming, None)
            if piece is None:
                self._coming = None
            else:
                self._post([piece])
        if self._progress is not None and self._cells > self._told:
            told, self._told = self._told, self._cells
            self._progress(self._told - told)
        return not self._left and self._coming is None

    def _wait(self) -> list[tuple[DevicePiece, Looked]]:
        changed = self._fleet.board.changed
        while not self.is_ready():
            with changed:
                if self._left:
                    changed.wait(WAIT_SECONDS)
        for held, _ in self._subjects.parts:
            held.is_used = True
        return self._found

    def candidates(self) -> list[Candidates]:
        """Wait for the hits of every query."""
        found = [(piece, each) for piece, each in self._wait() if isinstance(each, list)]
        together = []
        for query in range(len(self._group.profiles)):
            each = [piece.moved(candidates[query]) for piece, candidates in found]
            places = np.concatenate([np.empty(0, dtype=np.int64), *(one.places for one in each)])
            scores = np.concatenate([np.empty(0, dtype=np.int32), *(one.scores for one in each)])
            together.append(Candidates(places, scores))
        return together

    def scores(self) -> ScoreArray:
        """Wait for all scores, shape (n_queries, n_subjects)."""
        values: ScoreArray = np.zeros((len(self._group.profiles), self._subjects.chunk.n_subjects), dtype=np.int32)
        for piece, each in self._wait():
            if not isinstance(each, list):
                places = (piece.firsts[:, None] + np.arange(LANES)).reshape(-1)[: each.shape[1]]
                values[:, places] = each
        return values

    def pending(self) -> Pending:
        """Return what waits for the hits."""
        return Pending(self.candidates, self.is_ready)
