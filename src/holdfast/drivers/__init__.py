"""The only code that waits. A driver runs flows: it performs their effects on real connections.

- `blocking/`: threads; one poll over all nodes
- `aio/`: asyncio; one connection per node and event loop
- `channel.py`: one node's connection over its life, for both; `roster.py`: who answers where
- `port.py`: what a client needs of a driver
- the simulator's driver is in `holdfast.testing`
- `clock.py`: our own clock, and `source.py`: tokens and chance, for all real drivers
"""
