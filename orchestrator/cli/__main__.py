"""`python -m orchestrator.cli`: the command line without its installed script."""

from orchestrator.cli.main import main

if __name__ == "__main__":
    main()
