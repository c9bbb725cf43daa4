"""The laws of the lock, free of sockets, clocks, randomness and threads.

A protocol step is a *flow*: a generator that yields effects (`effects.py`) and is resumed with
the time. Drivers perform the effects; the simulator in `holdfast.testing` is one of the drivers,
so what it checks is this code and not a model of it.

The laws that the flows keep, cited at the lines that keep them:

- **L1** A lease's validity is counted from before the first byte of its round was sent.
- **L2** A lease exists only by a quorum of grants in one round, noticed while still valid.
- **L3** A node has one vote in a round. Silence and failure are not votes.
- **L4** A token names one attempt: it may be said again, and never after its release was told.
- **L5** Whoever does not win, nor waits on, tells *every* node to release, answered or not.
- **L6** A lease that has ended is never revived.
- **L7** While unwinding, a flow tells and never waits.
- **L8** A lease is renewed only while its owner lives.
- **L9** The loss of a lease is told when it is known, and at its `valid_until` at the latest.

Those of waiting, Q1 to Q3, are at the top of `queue.py`.

Nothing here imports from outside `core/` except the standard library's pure parts;
`tools/check_core.py` sees to it.
"""
