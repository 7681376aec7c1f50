/** The part of the table about several primaries. */
export const shardCodes = {
  SHARD_NO_KEY: {
    class: 'UsageError',
    retryable: false,
    what: 'With several primaries this cannot be sent anywhere: nothing says which scope it belongs to.',
    next: 'Pass scopes to the transaction. What looks at a whole server (observe, audit, maintain, migrate) is done with the driver of one primary at a time.',
  },
  SHARD_SPLIT: {
    class: 'UsageError',
    retryable: false,
    what: 'The scopes of one operation are on different primaries, so that it could not be atomic. Nothing was sent.',
    next: 'Give what belongs together one scope, or reserve on each primary and settle afterwards with holdAcross().',
  },
  SHARD_ELSEWHERE: {
    class: 'RefusedError',
    retryable: true,
    what: 'This transaction is on a primary that does not have the bucket it was asked to work on; the server refused it.',
    next: 'Open the transaction with hf.transaction(body, { scopes }), naming every scope it touches; run it again if the bucket has just moved.',
  },
  SHARD_PRIMARY_UNKNOWN: {
    class: 'UsageError',
    retryable: false,
    what: 'The bucket is on a primary that this process was not told of. Nothing was sent.',
    next: 'Add the primary that is named to shardedDriver(), under that name, and start the process again.',
  },
  SHARD_BUCKET_LOST: {
    class: 'RefusedError',
    retryable: false,
    what: 'No primary has the bucket: the one that got it was restored to before that. Nothing was done.',
    next: 'Running it again does not help. `holdfast shards status` names the bucket, and `holdfast shards repair --adopt --yes` gives it back to that primary, empty.',
  },
  SHARD_MOVING: {
    class: 'ContentionError',
    retryable: true,
    what: 'The bucket is being moved to another primary, and that took longer than we wait.',
    next: 'Try again. If it lasts, look at `holdfast shards status`: a move may have to be resumed or undone.',
  },
  SHARD_UNCONFIRMED: {
    class: 'ContentionError',
    retryable: true,
    what: 'The primary was restored, copied, promoted or started anew, and could not be compared with the others: another one may have the bucket. Nothing was done.',
    next: 'Try again. If it lasts, bring the other primaries back, or look at `holdfast shards status`.',
  },
  SHARD_PRIMARY_FAILED: {
    class: 'DriverError',
    retryable: true,
    what: 'Some primaries could not be asked, or failed. What was to be done on the others was done.',
    next: 'See details.failures for their names and errors. Call again once they are back; to go on with a list without them, pass details.next as after.',
  },
  SHARD_PRIMARY_NEEDED: {
    class: 'DriverError',
    retryable: true,
    what: 'A primary that is needed for this could not be asked, or failed. It was not begun, or not brought to its end.',
    next: 'Bring back the primaries that are named, then do it again. `holdfast shards status` shows the others, and moves that are still open.',
  },
  SHARD_NO_ANSWER: {
    class: 'UnknownOutcomeError',
    retryable: false,
    what: 'A primary says nothing, not even to a question without work, and is not waited for. What was sent to it may or may not have been done.',
    next: 'Check the primary and the network to it. What belongs to other primaries goes on.',
  },
  SHARD_HOLD_INCOMPLETE: {
    class: 'LostError',
    retryable: false,
    what: 'Reservations on several primaries were decided on, but one of them could not be settled any more: it had expired, and its book refuses to settle late.',
    next: 'Book that part by hand, details.part says which. Declare the books with late: "book", or give holdAcross() a longer ttl.',
  },
  SHARD_MAP_MISSING: {
    class: 'SchemaError',
    retryable: false,
    what: 'A primary does not know which buckets are its own.',
    next: 'Run `holdfast shards init` once for all primaries together, after `holdfast migrate` on each.',
  },
  SHARD_MAP_INVALID: {
    class: 'SchemaError',
    retryable: false,
    what: 'What a primary says about itself does not fit what it was connected as.',
    next: 'Give shardedDriver(), createMoves() and initShards() each primary under the name it was set up with, all of one cluster.',
  },
  SHARD_INIT_REFUSED: {
    class: 'RefusedError',
    retryable: false,
    what: 'A primary has rows in buckets that would be those of another one, which nobody would find again. It was not made a part of the cluster.',
    next: 'Leave ownerOf out, so that buckets with rows stay where they are, and move them afterwards. Where two primaries have rows in one bucket, empty one of them.',
  },
} as const
