"""The keeper: one daemon thread per client that renews its leases, over connections of its own.

Neither a busy worker nor a blocked event loop starves it, and no lease has a thread to itself.

- `keeper.py`: `Keeper`, what clients and leases call, from any thread
- `loop.py`: what the thread does: runs the flow `core.keeping.keep` for every lease
- `owner.py`: who a lease is renewed for, and whether they live
- `port.py`: what a client needs of a keeper; the in-memory clients have another one

What the keeper decides is decided in `core/keeping.py`, and is simulated.
"""
