"""One host during one command: a link that is replaced when it breaks, and the payload that answers on it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from orchestrator.config import HostConfig
from orchestrator.errors import HostError, HostNotReadyError
from orchestrator.remote.payload import build_payload
from orchestrator.remote.preflight import (
    DRAFTER_PACKAGES,
    SERVER_PACKAGES,
    already_there,
    choose_python,
    install,
    mend,
    ship,
)
from orchestrator.remote.ssh_config import SshTarget, resolve
from orchestrator.remote.verbs import (
    Installed,
    NotAnsweredError,
    PayloadBugError,
    PayloadMissingError,
    PythonMissingError,
    Request,
    ask,
    call,
    new_nonce,
)
from orchestrator.updates import Note, Update
from remote_payload.schema import Frame, HostFacts, ProbeFrame, ProbeRequest
from remote_payload.schema.capture_rule import WiringFacts, WiringRequest
from remote_payload.schema.frames import TopFrame, WiringFrame
from remote_payload.schema.top import TopFacts, TopRequest

if TYPE_CHECKING:
    from orchestrator.remote.link import Link

F = TypeVar("F", bound=Frame)

PROBE_S = 120.0  # importing torch from a cold network disk takes its time, and there may be several interpreters
WIRING_S = 90.0  # the interpreter is given 60 s to find SGLang and read it
MAY_BE_DAMAGE = (NotAnsweredError, PayloadBugError)
"""How a payload shows that was damaged on the host, or sources that were compiled from it."""


class HostSession:
    """Connects on first use. Not for more than one thread. A context manager; leaving it closes the link."""

    def __init__(
        self,
        name: str,
        host: HostConfig,
        tell: Callable[[Update], None],
        *,
        accept_new: bool = False,
        unknown_hint: str | None = None,
    ) -> None:
        """`name` is the host as the user named it; `accept_new` lets unknown (never changed) host keys in.

        `unknown_hint` is what to try when the name leads nowhere.
        """
        self.name = name
        self.host = host
        self.target, self._link_class = _resolve_and_import(host.ssh)
        self._payload = build_payload()
        self._tell = tell
        self._accept_new = accept_new
        self._unknown_hint = unknown_hint
        self._link: Link | None = None
        self._installed: Installed | None = None
        self._payload_told = False
        self.has_connected = False
        """Whether the host could be reached at least once during this command."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    @property
    def destination(self) -> str:
        """What the name means now: `user@address:port`."""
        return self.target.destination

    @property
    def payload_sha256(self) -> str:
        """The payload that is shipped to the host."""
        return self._payload.sha256

    def link(self) -> "Link":
        """The link, opened when there is none. Raises HostError and its subclasses."""
        if self._link is None:
            self._link = self._open()
            self.has_connected = True
            for warning in self._link.warnings:
                self._tell(Note(name="known_hosts", text=warning))
            for news in self._link.news:
                self._tell(Note(name="host key", text=news))
            self._tell(Note(name="connected", text=f"{self.name} ({self.destination})"))
        return self._link

    def _open(self) -> "Link":
        try:
            timeout_s = self.host.connect_timeout_s
            return self._link_class.open(self.target, accept_new=self._accept_new, connect_timeout_s=timeout_s)
        except HostError as error:
            if type(error) is HostError and self._unknown_hint:
                error.hint = "; ".join(filter(None, (error.hint, self._unknown_hint)))
            raise

    def drop(self) -> None:
        """Close the link; the next use opens a new one."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def installed(self) -> Installed:
        """The payload on the host, under any interpreter that can run its stdlib part; ships when it must."""
        if self._installed is None:
            self._payload_told = True
            self._installed = install(self.link(), self.host, self._payload, self._tell)
        return self._installed

    def use(self, python: str) -> None:
        """Take it on trust that `python` and the payload are there; a call that finds otherwise mends it."""
        self._installed = Installed(python=python, root=self.host.root, sha256=self._payload.sha256)

    def facts(self) -> HostFacts:
        """Look at the machine and its interpreters (only the configured one where one is configured)."""
        pythons = (self.host.python,) if self.host.python else ()
        request = ProbeRequest(nonce=new_nonce(), root=self.host.root, pythons=pythons)
        return self.ask("probe", request, ProbeFrame, PROBE_S).facts

    def top(self) -> TopFacts:
        """Look at its GPUs, who holds them and who waits for them."""
        request = TopRequest(nonce=new_nonce(), root=self.host.root, leases=self.host.leases)
        return self.ask("top", request, TopFrame, PROBE_S).facts

    def wiring(
        self, model: str, draft: str, python: str | None, source: str | None, exec_prefix: Sequence[str] | None = None
    ) -> WiringFacts:
        """What the SGLang of `python` (None: one that has it), or of `source`, says. `exec_prefix` None: the host's."""
        prefix = tuple(self.host.exec_prefix if exec_prefix is None else exec_prefix)
        python = "python3" if python is None and prefix else python
        if python is None:
            python = self.choose_python(SERVER_PACKAGES) if source is None else self.installed().python
        request = WiringRequest(
            nonce=new_nonce(),
            root=self.host.root,
            model=model,
            draft=draft,
            python=python,
            exec_prefix=prefix,
            source=source,
        )
        return self.ask("wiring", request, WiringFrame, WIRING_S).facts

    def choose_python(self, packages: tuple[str, ...] = DRAFTER_PACKAGES) -> str:
        """Find the interpreter that has all of `packages`, and say so. Raises HostNotReadyError."""
        chosen = choose_python(self.facts(), self.host, self.name, packages)
        how = "configured" if self.host.python else "found"
        has = f"{packages[0]} {getattr(chosen, packages[0])}"
        self._tell(Note(name="python", text=f"{chosen.path} ({how}: Python {chosen.version}, {has})"))
        self.use(chosen.path)
        return chosen.path

    def frames(self, verb: str, request: Request, silence_s: float) -> Iterator[Frame]:
        """Call a verb; ships the payload first where the host has lost or damaged it.

        Raises PythonMissingError when a launch's interpreter is gone: its spec names it, so another needs another spec.
        """
        answered = False
        try:
            for frame in call(self.link(), self.installed(), verb, request, silence_s):
                answered = True
                self._tell_payload()
                yield frame
            return
        except (PayloadMissingError, PythonMissingError, *MAY_BE_DAMAGE) as error:
            if answered or (verb == "launch" and isinstance(error, PythonMissingError)):
                raise
            self._mend(error)
        try:
            yield from call(self.link(), self.installed(), verb, request, silence_s)
        except (PayloadMissingError, PythonMissingError):
            raise self._vanishing() from None

    def _mend(self, error: Exception) -> None:
        """Make the next call find what this one lacked. Raises `error` when the payload was not to blame for it."""
        self._payload_told = True
        if isinstance(error, PythonMissingError):
            self._installed = None
            return
        installed = self.installed()
        if isinstance(error, MAY_BE_DAMAGE):
            if not mend(self.link(), installed):
                raise error
            self._tell(Note(name="payload", text="was damaged on the host, mended"))
        ship(self.link(), installed, self._payload, self._tell)

    def _vanishing(self) -> HostNotReadyError:
        return HostNotReadyError(
            f"host `{self.name}`: the payload vanishes from {self.host.root}/payloads as soon as it is shipped, "
            "or the interpreter as soon as it is found",
            hint="is something cleaning that folder? set `root` in eagle3.toml to another one",
        )

    def _tell_payload(self) -> None:
        """A warm host answered without anything being sent: say so, once."""
        if not self._payload_told:
            self._payload_told = True
            self._tell(Note(name="payload", text=already_there(self._payload)))

    def ask(self, verb: str, request: Request, kind: type[F], silence_s: float) -> F:
        """Call a verb that answers with one frame."""
        try:
            return ask(self.link(), self.installed(), verb, request, kind, silence_s)
        except (PayloadMissingError, PythonMissingError, *MAY_BE_DAMAGE) as error:
            self._mend(error)
        try:
            return ask(self.link(), self.installed(), verb, request, kind, silence_s)
        except (PayloadMissingError, PythonMissingError):
            raise self._vanishing() from None


def _resolve_and_import(destination: str) -> tuple[SshTarget, type["Link"]]:
    """Where to dial, and what dials: `ssh -G` answers while SSH is imported, which takes a tenth of a second.

    Without OpenSSH the config's reader imports paramiko itself, and two threads must not import it at once.
    """
    if shutil.which("ssh") is None:
        link_class = _import_link()
        return resolve(destination), link_class
    with ThreadPoolExecutor(1) as pool:
        resolving = pool.submit(resolve, destination)
        link_class = _import_link()
        return resolving.result(), link_class


def _import_link() -> "type[Link]":
    from orchestrator.remote.link import Link  # noqa: PLC0415

    return Link
