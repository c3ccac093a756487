"""What is expected of a run, judged where its result comes home: after `run`, and after `attach` on another day."""

import shutil
from xml.etree import ElementTree

from orchestrator.demo.stage import DATA
from tests.support.laptop import Laptop
from tests.support.sshd import SshServer


def test_expectations_are_judged_after_run_and_after_attach(server: SshServer, laptop: Laptop) -> None:
    story, xml = server.home / "story", laptop.folder / "junit.xml"
    shutil.copytree(DATA, story)
    job = laptop.folder / "job.toml"
    job.write_text(
        'kind = "standalone"\n[expect]\nbest.accept_length_walk = [">= 2", ">= 3.9"]\nttft_s = "<= 1 s"\n',
        encoding="utf-8",
    )
    flags = [f"--draft={story / 'drafter_embed'}", f"--target={story / 'target'}", f"--rows={story / 'rows'}"]
    flags += ["--states=embed,2,4,5", "--sweep=wiring", "--capture-rows=0", "--threads=1", f"--job={job}"]
    done = laptop.run("run", "standalone", "--host", "gpu1", "--run-id", "a", f"--junit={xml}", *flags)
    assert done.code == 8, done.err
    told = " ".join(done.out.split())
    assert "1 of 3 expectations hold: a" in told
    assert "DOES NOT HOLD: best.accept_length_walk >= 3.9 at split=train" in told
    assert "CANNOT TELL: ttft_s <= 1 s; the run has no ttft_s" in told
    suite = ElementTree.fromstring(xml.read_bytes())
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    again = laptop.run("attach", "a", "--json")
    assert again.code == 8
    assert again.objects[-1]["wiring"]  # the report comes last
    judged = next(one for one in again.objects if one.get("kind") == "expectations")
    assert [one["outcome"] for one in judged["expectations"]] == ["passed", "failed", "cannot tell"]


def test_a_run_that_failed_meets_no_expectation(server: SshServer, laptop: Laptop) -> None:
    job, xml = laptop.folder / "job.toml", laptop.folder / "junit.xml"
    job.write_text('kind = "standalone"\n[expect]\nbest.accept_length_walk = ">= 2"\n', encoding="utf-8")
    flags = ["--draft=/nowhere", "--rows=/nowhere", f"--job={job}", f"--junit={xml}"]
    done = laptop.run("run", "standalone", "--host", "gpu1", *flags)
    assert done.code == 30, done.err
    suite = ElementTree.fromstring(xml.read_bytes())
    assert suite.get("errors") == "1"
    assert "the run left no figures: failed" in (suite[0][0].get("message") or "")
