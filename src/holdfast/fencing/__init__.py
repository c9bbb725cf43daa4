"""What a protected resource checks, so that a holder that was paused for too long cannot harm it.

No lease can stop a process that sleeps between its last look at the lease and its write. The
resource can: `lease.fence` rises with every lease of a lock, and the resource remembers the largest
it has seen. The rule has two halves, and is the same everywhere here:

1. **Accept iff fence >= last, in the same transaction as the write.** A check before the write, in
   a transaction of its own, leaves the same window open that it was meant to close.
2. **Write your fence before you read.** A new holder enters first; from then on whoever came before
   it is refused, and what it reads stays as it is until it changes it itself. Without that, an old
   holder's write could still slip in between the new one's reading and writing.

All helpers have the verb `enter(resource, fence)`, and keep one promise: when it has returned, no
write with a lower fence takes place any more.

- `FenceGate`: the resource is in this process
- `RedisFences`, `AsyncRedisFences`: it is in Redis or Valkey
- `SqlFences`: it is in a database with transactions

They need nothing of holdfast but the number: a resource's server may check the fences of holders
that are somewhere else.
"""

from ..errors import FencedOff
from .aio import AsyncRedisFences
from .gate import FenceGate
from .redis import RedisFences
from .sql import SqlFences

__all__ = ["AsyncRedisFences", "FenceGate", "FencedOff", "RedisFences", "SqlFences"]
