from typing import Any

import pytest

from orchestrator.config import HostConfig
from orchestrator.errors import ConfigError
from orchestrator.jobfile import PlannedJob
from orchestrator.order import at_host
from remote_payload.schema import SelftestJob, Setting
from remote_payload.schema.bench_job import BenchJob

CONTAINER = HostConfig(ssh="gpu1", exec_prefix=("docker", "exec", "-i", "sglang"))


def planned(job: Any, *settings: Setting) -> PlannedJob:
    return PlannedJob(job=job, settings=settings)


def test_a_hosts_prefix_becomes_the_jobs_and_says_where_it_came_from() -> None:
    default = Setting(key="exec_prefix", value="[]", source="default")
    model = Setting(key="model", value='"/m"', source="--model")
    found = at_host(planned(BenchJob(model="/m"), default, model), "gpu1", CONTAINER)
    assert getattr(found.job, "exec_prefix") == ("docker", "exec", "-i", "sglang")  # noqa: B009 - not in every job
    told = Setting(key="exec_prefix", value='["docker", "exec", "-i", "sglang"]', source="eagle3.toml [hosts.gpu1]")
    assert found.settings == (model, told)


def test_a_jobs_own_prefix_holds() -> None:
    asked = planned(BenchJob(model="/m", exec_prefix=("srun", "-N1")))
    assert at_host(asked, "gpu1", CONTAINER) is asked


def test_a_job_that_starts_no_server_is_left_alone() -> None:
    asked = planned(SelftestJob())
    assert at_host(asked, "gpu1", CONTAINER) is asked


def test_a_host_without_a_prefix_adds_nothing() -> None:
    asked = planned(BenchJob(model="/m"))
    assert at_host(asked, "gpu1", HostConfig(ssh="gpu1")) is asked


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"exec_prefix": ("docker", "exec", "-e", "HF_TOKEN=k-123", "sglang")}, "`exec_prefix`: the value of HF_TOKEN"),
        ({"exec_prefix": ("run", "--api-key", "k-123")}, "`exec_prefix`: the value of --api-key"),
        ({"environment": {"WANDB_API_KEY": "k-123"}}, "`environment`: the value of WANDB_API_KEY"),
    ],
)
def test_a_secret_in_a_hosts_configuration_is_refused_whatever_the_job(settings: dict[str, Any], where: str) -> None:
    for job in (BenchJob(model="/m"), SelftestJob()):
        with pytest.raises(ConfigError) as caught:
            at_host(planned(job), "gpu1", HostConfig(ssh="gpu1", **settings))
        assert where in caught.value.message
        assert "k-123" not in f"{caught.value.message}{caught.value.hint}"
        assert "`secrets` of the host" in (caught.value.hint or "")
