"""Sweeps over several hosts: split once -> each launches its share -> ask, collect, cancel all -> go on elsewhere.

Nothing here is distributed: each share is an ordinary sweep of its host, `night.h1`, `night.h2`, ..., that knows of
which group it is. This laptop keeps who has which share; another finds it out by asking the hosts.
"""
