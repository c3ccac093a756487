"""`eagle3-run.json`, the first file of an exported run: what is in the archive, so that it can be checked whole."""

from remote_payload.rundir import RUN_ID_PATTERN
from remote_payload.schema import SCHEMA_VERSION, ManifestFile
from remote_payload.schema.record import Record, require


class ExportManifest(Record):
    """The files of one run, by their names in the run's folder."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    files: tuple[ManifestFile, ...]

    def __post_init__(self) -> None:
        id_fits = RUN_ID_PATTERN.fullmatch(self.run_id) is not None
        require(id_fits, f"`run_id`: expected a run id ({RUN_ID_PATTERN.pattern}), found: {self.run_id!r}")
        names = [file.name for file in self.files]
        require(len(set(names)) == len(names), "each file once")
