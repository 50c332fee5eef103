"""Finds the message whose value does not decode, so that no other one is exhausted for it.

A job fails at its first message that is not done. A consumer class may read the values of its whole batch first, and an
exactly-once job is done as a whole: there the value that does not decode may lie behind messages that are well. Such a
job is tried again at once without that message and those behind it, and a later job then begins with the message.
"""

from __future__ import annotations

import threading

from awoke._native import HookJob, Job
from awoke.errors import DecodeError
from awoke.runtime.process.assigned import Key, key_of


class Undecodable:
    """The messages of one route whose values do not decode, until a job begins with them. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.offsets: dict[Key, set[int]] = {}
        """Of each assignment; at most one offset for each job that failed."""

    def place(self, job: Job, error: BaseException) -> int | None:
        """Returns which of the job's messages that are not done did not decode, from 0; None for any other error.

        One that is not the first is kept for `cut`. Another error is also a `DecodeError` of a remote call's result.
        """
        place = place_of(job, error)
        if place is None or not isinstance(error, DecodeError):
            return None
        key = key_of(job)
        with self._lock:
            if place > 0:
                self.offsets.setdefault(key, set()).add(error.offset)
            elif key in self.offsets:
                self.offsets[key].discard(error.offset)
        return place

    def truncate(self, job: Job) -> None:
        """Leaves the first such message of a job, unless the job begins with it, to a later job. Does not block."""
        if not self.offsets:
            return
        with self._lock:
            known = set(self.offsets.get(key_of(job), ()))
        if not known:
            return
        places = [place for place, offset in enumerate(job.batch().offsets()) if place > 0 and offset in known]
        if places:
            job.truncate(places[0])

    def forget(self, hook: HookJob) -> None:
        """Drops what is known of an assignment that has ended."""
        with self._lock:
            self.offsets.pop(key_of(hook), None)


def place_of(job: Job, error: BaseException) -> int | None:
    """Returns which of the job's messages that are not done an error of decoding is about; None for any other error."""
    if not isinstance(error, DecodeError) or (error.topic, error.partition) != (job.topic, job.partition):
        return None
    offsets = job.batch().offsets() if job.remaining else []
    return offsets.index(error.offset) if error.offset in offsets else None
