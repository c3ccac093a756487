"""The standalone drafter test: an EAGLE-3 drafter judged on captured rows, outside any engine. Needs torch."""
