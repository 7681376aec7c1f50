/** The part of the table about moving buckets between primaries. */
export const moveCodes = {
  SHARD_MOVE_REFUSED: {
    class: 'RefusedError',
    retryable: false,
    what: 'Buckets cannot be moved like this; nothing was changed.',
    next: 'The reason is in the message (details.subject). `holdfast shards status` shows where buckets are and which moves are open.',
  },
  SHARD_MOVE_BLOCKED: {
    class: 'ContentionError',
    retryable: true,
    what: 'Transactions that were open did not end in time. The move was undone; the buckets are where they were.',
    next: 'See blockers for who they are. End them, or give them more time with wait and pause, and move again.',
  },
  SHARD_MOVE_STALLED: {
    class: 'DriverError',
    retryable: true,
    what: 'The target keeps failing to receive or to store the rows of the buckets. The move is still open.',
    next: 'The log of the target says why. Fix it and resume the move, or undo it: until then the source keeps its WAL.',
  },
  SHARD_MOVE_INCOMPLETE: {
    class: 'RefusedError',
    retryable: false,
    what: 'The target has received more or fewer rows of the buckets than the source has. The move was undone, and the source has deleted nothing.',
    next: 'The table is in the message (details.subject). Check who hides rows from the role of connection, or writes to the table at the target, or at the source without Holdfast; then move again.',
  },
  SHARD_MOVE_OVERTAKEN: {
    class: 'LostError',
    retryable: false,
    what: 'Another process has brought this move further, undone or ended it.',
    next: 'Look at `holdfast shards status`. What was taken by its target can only be resumed, not undone.',
  },
  SHARD_MOVE_UNKNOWN: {
    class: 'UsageError',
    retryable: false,
    what: 'No primary knows a move with this id.',
    next: 'Look at `holdfast shards status`, with all primaries of the cluster.',
  },
} as const
