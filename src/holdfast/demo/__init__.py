"""Watch the lock hold: python -m holdfast.demo.

Several processes increment a counter that is not atomic, under one lock on a quorum of nodes. A
node is killed, then a holder in mid-increment; in the end the evidence is judged.

- `plot.py`: how many, how long, and what happens when
- `play.py`: performs the plot, on the `stage.py`, which starts and kills processes
- `worker.py`: one contender; `counter.py`, `witness.py` and `trap.py` are the files it meets
- `events.py`: what workers report and the stage does, one after the other
- `scene.py`: what is going on now, for the views `screen.py` and `plain.py`
- `evidence.py`, `verdict.py`: what happened in the end, and whether the lock held
"""
