"""The figures of a run, added up over its parts, and the line with all of them."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a part of the run.

    `schedules` are distinct interleavings. `operations` are requests to the deployed API, without the fuzzed
    ones; `acknowledged` are writes of a state that it answered with success. `faults` happened on a wire.
    `kills` are of clients, Lambda workers and the local AWS. `lost` are acknowledged writes that are not in
    the history; `violations` are every other violated invariant. `sequences` are of requests, on the model
    and two S3 servers; the line leaves them and the random `histories` out.
    """

    schedules: int = 0
    mutants_caught: int = 0
    mutants: int = 0
    operations: int = 0
    acknowledged: int = 0
    faults: int = 0
    kills: int = 0
    requests_fuzzed: int = 0
    lost: int = 0
    violations: int = 0
    sequences: int = 0
    histories: int = 0

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def failed(self) -> bool:
        """Return whether anything was lost or violated, or a mutant survived."""
        return bool(self.lost or self.violations or self.mutants_caught < self.mutants)

    def line(self) -> str:
        """Return the figures on one line, for scripts.

        >>> Figures(schedules=7, mutants_caught=2, mutants=2).line()[:41]
        'schedules=7 mutants=2/2 operations=0 ackn'
        """
        return (
            f"schedules={self.schedules} mutants={self.mutants_caught}/{self.mutants} "
            f"operations={self.operations} acknowledged={self.acknowledged} faults={self.faults} "
            f"kills={self.kills} requests_fuzzed={self.requests_fuzzed} lost={self.lost} "
            f"violations={self.violations}"
        )
