"""Every error this tool raises on purpose, each with an exit code and, where one helps, a hint.

Eagle3Error                         1
├── UsageError                      2   a flag, an id, a name that cannot be meant
│   ├── ConfigError                 2   eagle3.toml
│   └── JobFileError                2   a job file
├── InvalidRunError                 5   a run that cannot serve as a baseline or be compared
├── NotFoundError                   6   no such run, baseline, host, on this laptop or on the host
├── ExpectationError                8   what was expected of a run does not hold, or cannot be told
├── DetachedError                   9   Ctrl-C, or nobody reads our output: we stopped looking, the job goes on
├── HostError                      10   the host cannot be reached at all
│   ├── HostKeyError               11   unknown, changed or revoked host key, on any hop
│   ├── AuthenticationError        12   the host refused our keys
│   └── LinkLostError              13   the connection broke and did not come back in time
├── HostNotReadyError              14   no Python, no torch, root not writable, disk full
├── ClaimedError                   15   another run owns this run id
├── ProtocolError                  16   the host answered something that is not our wire
├── PartialError                   17   some hosts did not do what they were asked, or not all of a sweep came home
├── JobError                       20   the job itself ended badly; subclasses by outcome
│   ├── JobKilledError             21
│   ├── JobOutOfMemoryError        22
│   ├── JobTimedOutError           23
│   ├── JobCancelledError          24
│   ├── JobLostError               25
│   ├── CheckpointError            30   the drafter's files
│   └── RowsError                  31   the captured rows
├── StoreError                     40   this laptop's own store
├── OutputError                    41   standard output cannot be written
└── OutputClosedError             141   whoever read standard output is gone, as with SIGPIPE
"""


class Eagle3Error(Exception):
    """Base of the tree. `message` says what was expected, what was found and where; `hint` what to try."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(Eagle3Error):
    """A flag, an id or a name that cannot be meant."""

    exit_code = 2


class ConfigError(UsageError):
    """eagle3.toml is not what it should be; the message names file and key."""


class JobFileError(UsageError):
    """A job file is not what it should be; the message names file and key."""


class InvalidRunError(Eagle3Error):
    """A run that cannot serve as a baseline or be compared."""

    exit_code = 5


class NotFoundError(Eagle3Error):
    """No such run, baseline or host; the message offers the closest names."""

    exit_code = 6


class ExpectationError(Eagle3Error):
    """An expectation on a run that does not hold, or that its measurements cannot tell."""

    exit_code = 8


class DetachedError(Eagle3Error):
    """This laptop stopped looking; the job goes on."""

    exit_code = 9


class HostError(Eagle3Error):
    """The host cannot be reached."""

    exit_code = 10


class HostKeyError(HostError):
    """Unknown, changed or revoked host key; the hint holds the command to run next."""

    exit_code = 11


class AuthenticationError(HostError):
    """The host refused every key we may use."""

    exit_code = 12


class LinkLostError(HostError):
    """The connection broke; says nothing about the job."""

    exit_code = 13


class HostNotReadyError(Eagle3Error):
    """The host answers but cannot run the job: no Python, no torch, root not writable, disk full."""

    exit_code = 14


class LeaseOverError(HostNotReadyError):
    """The run that held the GPUs for this one is over."""


class ClaimedError(Eagle3Error):
    """This run id belongs to a run with another spec."""

    exit_code = 15


class SweepGoesOnError(ClaimedError):
    """A sweep still measures, or another goes on with it."""


class ProtocolError(Eagle3Error):
    """The host answered something that is not our wire."""

    exit_code = 16


class PartialError(Eagle3Error):
    """Of several hosts some did not answer, or did not do what they were asked; of a sweep not all came home."""

    exit_code = 17


class JobError(Eagle3Error):
    """The job ended badly."""

    exit_code = 20


class JobKilledError(JobError):
    """A signal ended the worker."""

    exit_code = 21


class JobOutOfMemoryError(JobError):
    """The kernel's out-of-memory killer ended the worker."""

    exit_code = 22


class JobTimedOutError(JobError):
    """The deadline passed."""

    exit_code = 23


class JobCancelledError(JobError):
    """Somebody cancelled the run."""

    exit_code = 24


class JobLostError(JobError):
    """The supervisor is gone and left no final state: killed, or the host rebooted."""

    exit_code = 25


class CheckpointError(JobError):
    """The drafter's or the target's files cannot be used."""

    exit_code = 30


class RowsError(JobError):
    """The captured rows cannot be used."""

    exit_code = 31


class StoreError(Eagle3Error):
    """This laptop's store cannot be read or written."""

    exit_code = 40


class OutputError(Eagle3Error):
    """Standard output cannot be written: a full disk, a closed descriptor."""

    exit_code = 41


class OutputClosedError(OutputError):
    """Whoever read our standard output is gone."""

    exit_code = 141
