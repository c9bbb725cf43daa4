"""The only code that waits. A driver runs flows: it performs their effects on real connections.

- `blocking/`: threads; one selector over all nodes
- the simulator's driver is in `holdfast.testing`
- `clock.py`: our own clock, and `source.py`: tokens and chance, for all real drivers
"""
