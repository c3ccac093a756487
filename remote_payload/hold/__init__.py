"""One lease for several runs: a run that holds GPUs, and the door through which others become its members."""
