"""Durable work on the store's own database: jobs that survive kill -9, session logs without gaps, wake-ups.

The protocol, once. `db_now` is the database's clock, the only one that is compared across nodes.

**Node lease** (`nodes`). A node renews its row (`lease = db_now + ttl`) every ttl/5, and takes the time of its own
clock *before* it sends the renewal. When that time is older than ttl the node fences itself: it begins no side effect.
Its clock counts suspend, so that a laptop that wakes up does not believe in an old lease. With each renewal and look
it reads which (job, epoch) it still owns; local runs that are not among them are cancelled. This, or a hint, is how a
node learns of a cancel or a theft.

**Claim** (`claims`). Ready jobs, and waiting ones whose `wake_at` has passed, are taken with `epoch + 1`. A job of a
dead node is taken over: first the row of the dead node is deleted, under its lock, so that the node cannot renew
meanwhile and believe that it still has the job. Takeovers are counted, claims are not; after five of them the job ends
in `error`, so that a job that kills its node cannot kill them all. A node that stops in order gives its jobs back.

**Fence** (`jobs.fence`). Every write of a run first locks the job's row and checks owner's epoch and state `running`. A
zombie's write is refused. Cancel is `epoch + 1`, from any node: after it nothing can be written for the old epoch.

**Step** (`running`). A memoised effect: it runs outside any transaction, its output is written fenced, and a replay
returns the output instead of running it again. Another name or digest in the same place is an error. Only the step in
flight at a crash runs again; so a call with side effects is not a plain step but a row of `calls`, which is moved to
PROCESSING, fenced, before its effect.

**Park and wake** (`jobs.park`, `jobs.wake`). A job that waits is a row with a `wake_key` and a `wake_at`: no thread, no
coroutine. Whoever may wake a job locks its row first, then writes and looks; whoever parks holds the same lock while it
checks that what it waits for is still to come. So no wake-up is lost, and of two that settle together one sees the end.

**Lock order**, everywhere: parent job, job, call or approval, session (its event last).

**Session log** (`log`). `UPDATE sessions SET seq = seq + 1`, then the event: the row lock makes the numbers gapless and
in the order of the commits, so a reader on any node can go on after number n.

**Hints** (`hints`). After a commit `Engine.hint(topic)` wakes those who watch: at once in this process, and on
PostgreSQL by a NOTIFY that is sent at most every 15 ms, on its own connection, outside the write transactions. A hint
says "look", never what is there. Hints can be lost: readers look again after a second or so in any case, and so does
the engine, whose one task otherwise sleeps until the smallest `wake_at`, `next_fire` or end of a lease.

**Schedules** (`schedules`). A fire moves `next_fire` on by a conditional update and inserts a job named after its slot,
in one transaction: exactly once on any number of nodes.
"""
