/** What a report of a racy entry has to say: which anomaly it is, and the fix that fits. */
import type { AnomalyName, RaceExplanation } from '../../packages/race/src/index.ts'

export interface Story {
  /** Several where the order that was found decides. */
  readonly anomaly: readonly AnomalyName[]
  /** The fix that is named first. */
  readonly fix: RegExp
}

const lostUpdate: Story = {
  anomaly: ['lost update'],
  fix: /SET n = n - 30 WHERE id = 1 AND n >= 30/,
}
const ownCheck = /SET n = n - \d+ WHERE id = 1 AND n >= \d+/
const guard = /hf\.guard/
const unique = /CREATE UNIQUE INDEX/
const rowLocks = /Lock every row/

/** By the name of the entry. */
const stories: Readonly<Record<string, Story>> = {
  'lost-update': lostUpdate,
  'lost-update-autocommit': lostUpdate,
  'lock-after-read': { anomaly: ['lost update'], fix: /Move the lock/ },
  'double-spend-late-lock': { anomaly: ['stale check'], fix: /Move the lock/ },
  'one-sided-lock': { anomaly: ['lost update'], fix: /take the lock/ },
  'read-in-one-transaction-write-in-the-next': {
    anomaly: ['lost update'],
    fix: /one transaction/,
  },
  'version-not-looked-at': { anomaly: ['stale check'], fix: /how many rows/ },
  'retry-with-an-old-value': lostUpdate,
  oversell: { anomaly: ['stale check'], fix: ownCheck },
  'oversell-autocommit': { anomaly: ['stale check'], fix: ownCheck },
  'coupon-used-twice': { anomaly: ['lost update'], fix: /AND NOT used/ },
  'token-redeemed-twice': { anomaly: ['stale check'], fix: /DELETE FROM (?:zoo\.)?token/ },
  'counter-by-hand': { anomaly: ['lost update'], fix: /DO UPDATE SET n = hits\.n/ },
  'json-read-modify-write': {
    anomaly: ['lost update'],
    // What some clients send for a document is a text to us.
    fix: /data = data \|\||AND data = '\{\}'/,
  },
  'tags-read-append-write': { anomaly: ['lost update'], fix: /AND tags = ''/ },
  'toggle-by-hand': { anomaly: ['lost update'], fix: /AND lit = false/ },
  'lock-column-by-hand': { anomaly: ['lost update'], fix: /AND holder IS NULL/ },
  'paid-and-cancelled': { anomaly: ['lost update'], fix: /AND status = 'pending'/ },
  'check-then-insert': { anomaly: ['check-then-insert'], fix: unique },
  'check-then-insert-repeatable-read': { anomaly: ['check-then-insert'], fix: unique },
  'insert-where-not-exists': { anomaly: ['check-then-insert'], fix: unique },
  'upsert-by-hand': { anomaly: ['check-then-insert'], fix: /CREATE UNIQUE INDEX.*DO UPDATE/ },
  'number-by-max': { anomaly: ['check-then-insert'], fix: /sequence/ },
  'gap-in-a-natural-key': { anomaly: ['check-then-insert'], fix: guard },
  'limit-by-count': { anomaly: ['check-then-insert'], fix: guard },
  'limit-by-count-of-three': { anomaly: ['check-then-insert'], fix: guard },
  'lock-of-the-wrong-row': { anomaly: ['check-then-insert'], fix: /lock the same/ },
  'write-skew': { anomaly: ['write skew'], fix: rowLocks },
  'write-skew-repeatable-read': { anomaly: ['write skew'], fix: rowLocks },
  'serializable-on-one-side': { anomaly: ['write skew'], fix: /SERIALIZABLE as well/ },
  'two-tables-one-rule': { anomaly: ['write skew'], fix: rowLocks },
  'delete-then-check': { anomaly: ['write skew'], fix: rowLocks },
  'orphan-without-foreign-key': { anomaly: ['write skew'], fix: /FOREIGN KEY/ },
  'claim-without-a-guard': { anomaly: ['double claim'], fix: /SKIP LOCKED/ },
  'claim-in-one-statement': { anomaly: ['double claim'], fix: /SKIP LOCKED/ },
  'claim-released-too-early': { anomaly: ['double claim'], fix: /one transaction/ },
  'advisory-locks-on-different-keys': { anomaly: ['lost update'], fix: /lock the same/ },
  'advisory-lock-released-too-early': { anomaly: ['lost update'], fix: /one transaction/ },
  'sum-of-two-reads': { anomaly: ['read skew'], fix: /REPEATABLE READ/ },
  'transfer-in-two-transactions': { anomaly: ['intermediate read'], fix: /in one transaction/ },
  'charged-twice': {
    anomaly: ['stale check', 'write skew'],
    fix: /only if it inserted a row/,
  },
  'gone-between-two-reads': { anomaly: ['non-repeatable read'], fix: /Read once/ },
  'create-table-if-not-exists': { anomaly: ['unhandled duplicate'], fix: /only one/ },
  'count-beside-a-nonce': { anomaly: ['lost update'], fix: /AND doc = / },
  'items-with-ids': { anomaly: ['lost update'], fix: /AND doc = / },
  'number-behind-an-id': { anomaly: ['check-then-insert'], fix: guard },
  'thirty-days-lost': { anomaly: ['lost update'], fix: /lock the row when reading it/ },
  'two-ids-for-one': { anomaly: ['lost update'], fix: /AND code IS NULL/ },
  'a-number-before-a-token': { anomaly: ['check-then-insert'], fix: guard },
  'told-before-the-commit': { anomaly: ['intermediate read'], fix: /in one transaction/ },
  'opposite-orders': { anomaly: ['deadlock'], fix: /in one order/ },
}

/** What of an explanation is not as it should be; undefined if all is. */
export function wrongStory(entry: string, told: RaceExplanation): string | undefined {
  const story = stories[entry]
  if (story === undefined) return `nobody has said what the story of ${entry} is`
  if (!story.anomaly.includes(told.anomaly)) {
    return `it is called ${told.anomaly}, and is ${story.anomaly.join(' or ')}: ${told.why}`
  }
  const [first] = told.fixes
  const fix = `${first?.text ?? 'none'} ${first?.code ?? ''}`
  return story.fix.test(fix) ? undefined : `the first fix is: ${fix}`
}
