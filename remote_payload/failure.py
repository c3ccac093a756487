"""A job that gives up for a reason it can name."""

from remote_payload.schema.run import Failure


class JobFailure(Exception):  # noqa: N818 - "failure" is the wire's word: the worker writes it to failure.json
    """Carries the `Failure` that the worker leaves behind; never a bug of ours."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def checkpoint_failure(message: str, *, hint: str | None = None, details: tuple[str, ...] = ()) -> JobFailure:
    """The drafter's or the target's files cannot be used."""
    return JobFailure(Failure(kind="checkpoint", message=message, hint=hint, details=details))


def rows_failure(message: str, *, hint: str | None = None, details: tuple[str, ...] = ()) -> JobFailure:
    """The captured rows cannot be used."""
    return JobFailure(Failure(kind="rows", message=message, hint=hint, details=details))


def machine_failure(message: str, *, hint: str | None = None) -> JobFailure:
    """This machine lacks what the job needs."""
    return JobFailure(Failure(kind="machine", message=message, hint=hint))


def job_failure(message: str, *, hint: str | None = None, details: tuple[str, ...] = ()) -> JobFailure:
    """The job itself asks for something that cannot be done."""
    return JobFailure(Failure(kind="job", message=message, hint=hint, details=details))


def server_failure(message: str, *, hint: str | None = None, details: tuple[str, ...] = ()) -> JobFailure:
    """The model server did not start, or died; `details` are its log's decisive lines."""
    return JobFailure(Failure(kind="server", message=message, hint=hint, details=details))
