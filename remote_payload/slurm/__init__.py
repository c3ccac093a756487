"""Runs under Slurm: submitted from the login node, supervised inside the batch job, judged by Slurm's own word."""
