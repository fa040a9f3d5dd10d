"""CheckpointManager keeps the checkpoints of a run in order and deletes those that are no longer
kept."""

from __future__ import annotations

import bisect
import logging
import math
from typing import Any

from ray.train import metric_path, snapshot
from ray.train.claim import FolderClaim
from ray.train.config import CheckpointConfig
from ray.train.errors import CheckpointManagerInitializationError
from ray.train.reported import ReportedCheckpoint, ReportedCheckpointStatus
from ray.train.snapshot import Entry, Snapshot
from ray.train.storage import SNAPSHOT, StorageContext

logger = logging.getLogger(__name__)

_OWN_NAME = "Give each run a RunConfig(name=...) of its own."


class CheckpointManager:
    """Lives in the controller of a run; not safe for use by several threads.

    Order: by time, or by the metric of CheckpointConfig with the best one last. Beyond num_to_keep
    the worst ones are deleted, but never the latest: a restart begins there.
    """

    def __init__(
        self,
        checkpoint_config: CheckpointConfig | None,
        storage: StorageContext,
        claim: FolderClaim | None = None,
    ):
        """claim: the run's claim to its folder; None means that no other run uses it."""
        self._claim = claim
        # The text of the record that this run has last found or written.
        self._recorded: str | None = None
        self._config = checkpoint_config or CheckpointConfig()
        self._storage = storage
        self._entries: list[Entry] = []
        self._latest: Entry | None = None
        self._report_index = 0

    @property
    def report_index(self) -> int:
        """How many reports the run has made so far, which is the index of the next one."""
        return self._report_index

    @property
    def latest(self) -> ReportedCheckpoint | None:
        """The checkpoint that was registered last."""
        return None if self._latest is None else self._reported(self._latest)

    def results(self) -> list[ReportedCheckpoint]:
        """All registered checkpoints that have not been deleted, in the order above."""
        return [self._reported(entry) for entry in self._entries]

    def best(self, count: int | None = None) -> list[ReportedCheckpoint]:
        """The best `count` of results(), best last; by default as many as are to be kept."""
        count = self._config.num_to_keep if count is None else count
        results = self.results()
        return results if count is None else results[max(0, len(results) - count) :]

    def _reported(self, entry: Entry) -> ReportedCheckpoint:
        checkpoint = self._storage.checkpoint_at(entry.dir_name)
        return ReportedCheckpoint(checkpoint, entry.metrics, ReportedCheckpointStatus.COMMITTED)

    def load(self) -> bool:
        """Takes over what an earlier run of this name and path registered; False without any.

        What that run had begun to upload and not registered is deleted, unless it goes on.

        Raises CheckpointManagerInitializationError if its record cannot be read, or a checkpoint
        that it names is gone.
        """
        place = self._storage.place(SNAPSHOT)
        advice = "Choose another RunConfig(name=...) to begin afresh, or restore what is missing."
        try:
            text = self._storage.read_snapshot()
            found = None if text is None else snapshot.from_text(text)
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointManagerInitializationError(
                f"The record of this run's checkpoints, {place}, cannot be read: {error}. {advice}"
            ) from error
        self._recorded = text
        is_alone = self._claim is None or self._claim.get()
        # Without locks, another run may be uploading to what looks unfinished here.
        may_delete = self._claim is None or self._claim.is_exclusive
        if not is_alone:
            logger.warning(
                "Another run with the name of this one is under way in its folder, %s. This run "
                "will end when it registers a checkpoint there before the other one has ended. %s",
                self._storage.experiment_fs_path,
                _OWN_NAME,
            )
        if found is None:
            if may_delete:
                self._storage.delete_unfinished(())
            return False
        lost = [entry.dir_name for entry in found.entries if not self._exists(entry.dir_name)]
        if lost:
            raise CheckpointManagerInitializationError(
                f"{place} names checkpoints that are not there: {', '.join(lost)}. {advice}"
            )
        if may_delete:
            self._storage.delete_unfinished({entry.dir_name for entry in found.entries})
        # The configuration may rank by another metric than the earlier run did.
        self._entries = sorted(found.entries, key=self._goodness)
        self._latest = found.latest
        self._report_index = found.report_index
        logger.info(
            "A run of this name was here before: %d of its checkpoints were found in %s, and this "
            "run goes on from the latest. Choose another RunConfig(name=...) for a fresh run.",
            len(self._entries),
            self._storage.experiment_fs_path,
        )
        return True

    def _exists(self, dir_name: str) -> bool:
        return self._storage.exists(dir_name)

    def advance(self, report_index: int) -> None:
        """Counts the report with this index, which brought no checkpoint."""
        self._report_index = max(self._report_index, report_index + 1)

    def register(
        self, dir_name: str, metrics: dict[str, Any], report_index: int, has_late: bool = False
    ) -> list[str]:
        """Takes the checkpoint of the report with this index, which is complete in its directory.

        Writes the record, then deletes the directories of checkpoints that are no longer kept and
        returns their names. A name that was registered before is the new checkpoint from now on.
        has_late: ranks that were not waited for may be uploading to it, which is not disturbed.

        Raises RuntimeError, and leaves everything as it is, if another run of this name is here.
        """
        self._check_alone()
        if not has_late:
            self._storage.finish(dir_name)
        entry = Entry(dir_name, metrics, report_index)
        self._entries = [old for old in self._entries if old.dir_name != dir_name]
        keys = [self._goodness(old) for old in self._entries]
        self._warn_without_score(entry)
        self._entries.insert(bisect.bisect_right(keys, self._goodness(entry)), entry)
        self._latest = entry
        self.advance(report_index)
        dropped = self._drop_surplus()
        text = snapshot.to_text(Snapshot(self._entries, self._latest, self._report_index))
        self._storage.write_snapshot(text)
        self._recorded = text
        self._delete(dropped)
        return dropped

    def _check_alone(self) -> None:
        """Raises RuntimeError if another run with this name has the folder, or has registered
        something since this run did. The other run's checkpoints must be neither deleted nor hidden
        by a record."""
        try:
            found = self._storage.read_snapshot()
        except ValueError:
            # A record that cannot be read is not what this run has written.
            found = ""
        is_alone = self._claim is None or self._claim.get()
        if is_alone and found in (None, self._recorded):
            return
        raise RuntimeError(
            f"Another run with the name of this one is under way in its folder, "
            f"{self._storage.experiment_fs_path}, or was since this one began. This run ends, so "
            f"that the other one's checkpoints stay; its own last one is not registered. {_OWN_NAME}"
        )

    def _drop_surplus(self) -> list[str]:
        keep = self._config.num_to_keep
        if keep is None:
            return []
        surplus = [
            entry
            for entry in self._entries[: max(0, len(self._entries) - keep)]
            if entry is not self._latest
        ]
        self._entries = [entry for entry in self._entries if entry not in surplus]
        return [entry.dir_name for entry in surplus]

    def _delete(self, dir_names: list[str]) -> None:
        kept = [entry.dir_name + "/" for entry in self._entries]
        for name in dir_names:
            # A user's upload function may nest checkpoints. A directory that lies in a kept one, or
            # contains one, stays.
            folder = name + "/"
            if any(other.startswith(folder) or folder.startswith(other) for other in kept):
                continue
            try:
                self._storage.delete(name)
            except OSError as error:
                logger.warning(
                    "The checkpoint %s is no longer kept, but cannot be deleted: %s",
                    self._storage.place(name),
                    error,
                )

    def _score(self, entry: Entry) -> float | None:
        """Returns the metric by which checkpoints are ranked; None if it is missing or no
        number."""
        value = metric_path.look_up(entry.metrics, self._config.checkpoint_score_attribute)
        if value is metric_path.MISSING or value is None or isinstance(value, (str, bytes)):
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None

    def _goodness(self, entry: Entry) -> tuple[int, float]:
        """Returns a key that is greater for a better checkpoint: NaN is worst, then no metric, then
        by value."""
        if self._config.checkpoint_score_attribute is None:
            return (1, entry.report_index)
        score = self._score(entry)
        if score is None:
            return (1, -math.inf)
        if math.isnan(score):
            return (0, 0.0)
        return (1, score if self._config.checkpoint_score_order == "max" else -score)

    def _warn_without_score(self, entry: Entry) -> None:
        attribute = self._config.checkpoint_score_attribute
        if attribute is not None and self._score(entry) is None:
            logger.warning(
                "The checkpoint %s has no number for the metric %r, by which checkpoints are "
                "ranked: it counts as the worst. Its metrics: %s",
                entry.dir_name,
                attribute,
                ", ".join(metric_path.names(entry.metrics)) or "none",
            )
