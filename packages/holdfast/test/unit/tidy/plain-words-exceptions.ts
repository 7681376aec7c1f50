/**
 * Sentences of more than thirty words that stay, by the page or the error that has them: how they begin, and why. A list
 * that cannot be told shorter is a reason; a thought that can be told in two sentences is none.
 */
export const longSentences: Readonly<Record<string, readonly string[]>> = {}

/** Pages that are not plain yet. Nothing is added: a page is taken out once it is plain, and a new page is plain. */
export const notYetPlain: readonly string[] = [
  'docs/audit-and-retention.md',
  'docs/bundlers.md',
  'docs/capacity.md',
  'docs/claims.md',
  'docs/cli.md',
  'docs/console.md',
  'docs/credits.md',
  'docs/doctor.md',
  'docs/drivers.md',
  'docs/events.md',
  'docs/faults.md',
  'docs/following.md',
  'docs/holds.md',
  'docs/idempotency.md',
  'docs/isolation.md',
  'docs/leases.md',
  'docs/lint/README.md',
  'docs/lint/no-check-then-create.md',
  'docs/locks.md',
  'docs/metrics.md',
  'docs/moving-a-table-over.md',
  'docs/moving-buckets.md',
  'docs/mysql.md',
  'docs/nestjs.md',
]
