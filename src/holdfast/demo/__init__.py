"""Watch the lock hold: python -m holdfast.demo.

Several processes increment a counter that is not atomic, under one lock on a quorum of nodes. A
node is killed and comes back empty, then a holder is killed in mid-increment; in the end the
evidence is judged.

- `plot.py`: how many, how long, and what happens when
- `play.py`: performs the plot, on the `stage.py`, which starts and kills processes
- `worker.py`: one contender; `counter.py`, `witness.py` and `trap.py` are the files it meets
- `comeback.py`: asks the node that was started again how it is, until it votes; `onlooker.py`: asks
  all nodes who is in line
- `events.py`: what workers report and the stage does, one after the other
- `scene.py`: what is going on now, made of every `actor.py` and `node.py`; for the views
  `plain.py` and `screen.py`, which shows one `picture.py` after the other
- `evidence.py`, `verdict.py`: what happened in the end, and whether the lock held; `order.py`:
  whether it went to whoever had waited longest
"""
