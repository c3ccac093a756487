"""A small nvidia-smi that answers from files: what the GPUs of a made host are doing, changed while somebody asks."""

from pathlib import Path

TWO_GPUS = "0, GPU-aaaa, NVIDIA H200, 143771, 500, 0, 570.86\n1, GPU-bbbb, NVIDIA H200, 143771, 500, 0, 570.86\n"
_ANSWERS = """
case "$*" in
*query-gpu*) cat {folder}/gpus ;;
*compute-apps*) cat {folder}/apps ;;
-L) cat {folder}/listing ;;
esac
"""


class MadeSmi:
    """`folder/bin/nvidia-smi`, two idle GPUs until `say` tells otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tool = folder / "bin" / "nvidia-smi"
        self.tool.parent.mkdir(exist_ok=True)
        self.answer()

    @property
    def path(self) -> str:
        """A PATH on which it is found."""
        return f"{self.tool.parent}:/usr/bin:/bin"

    def run(self, body: str) -> None:
        """Let it do this instead of answering."""
        self.tool.write_text(f"#!/bin/sh\n{body}\n")
        self.tool.chmod(0o755)

    def answer(self) -> None:
        """Let it answer, with two idle GPUs."""
        self.run(_ANSWERS.format(folder=self.folder))
        self.say(TWO_GPUS)

    def say(self, gpus: str, apps: str = "", listing: str = "") -> None:
        """What it answers from now on."""
        for name, text in (("gpus", gpus), ("apps", apps), ("listing", listing)):
            (self.folder / name).write_text(text)
