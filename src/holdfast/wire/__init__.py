"""What is said to a server, and how its answers are read. Pure: bytes in, bytes out.

- `lua/` and `scripts.py`: the scripts, assembled from one file per kind and one per verb
- `keys.py`: how a lock's name becomes a key
- `commands.py`: a core command becomes bytes; a reply becomes a vote
- `greeting.py`: what is said first on a new connection
- `link.py`: one connection's state: what waits for an answer, in which order
- `endpoint.py`: where a node is and how to log in, read by redis-py's own parsing
"""
