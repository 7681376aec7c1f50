import { describe, expect, test } from 'vitest'
import type { Failure, Report } from '../../../src/core/model.ts'
import { type Explanation, explainFailure } from '../../../src/report/explain.ts'
import { runOf } from '../../support/play.ts'
import * as made from '../../support/reports.ts'

function explained(report: Report): Explanation {
  return explainFailure(report, report.failure as Failure)
}

describe('names what happened, why, and what helps', () => {
  test.each([
    [
      made.quota,
      'check-then-insert',
      "bob's COMMIT (6) added to it before alice wrote (7)",
      "lockKey('user', userId)",
    ],
    [
      made.lostUpdate,
      'lost update',
      'while bob waited with its own write (6)',
      "SET qty = qty - $1 WHERE sku = 'A-1'",
    ],
    [
      made.lockTooLate,
      'lost update',
      'comes after the read (2)',
      'Move the lock (7) before the read (2)',
    ],
    [
      made.oneStatement,
      'check-then-insert',
      'a statement is not a moment',
      'CREATE UNIQUE INDEX ON migration_lock (id)',
    ],
    [
      made.writeSkew,
      'write skew',
      'in different rows',
      'FROM doctors WHERE on_call = true FOR UPDATE',
    ],
    [made.doubleClaim, 'double claim', 'overwrote a claim', 'FOR UPDATE SKIP LOCKED'],
    [
      made.deadlock,
      'deadlock',
      'alice holds accounts where id = 1 (2) and waits for bob at (5)',
      'ORDER BY id FOR UPDATE',
    ],
    [made.crash, 'lost after crash', 'committed at (1), in credits, stays', 'one transaction'],
    [
      made.lostAnswer,
      'lost answer',
      'cannot know whether it happened',
      'ON CONFLICT (id) DO NOTHING',
    ],
    [made.readSkew, 'read skew', 'two halves of a change', 'REPEATABLE READ'],
    [
      made.staleCheck,
      'stale check',
      "bob's COMMIT (5) changed it before alice wrote (6)",
      "lockKey('users', id)",
    ],
    [
      made.duplicate,
      'unhandled duplicate',
      'error 23505 ended the flow',
      'INSERT INTO accounts … ON CONFLICT',
    ],
    [made.notRetried, 'unhandled serialization failure', 'nothing ran', 'hf.transaction'],
    [made.oneSidedLock, 'check-then-insert', 'the other side takes none', 'Let bob take the lock'],
    [
      made.lockReleased,
      'lost update',
      'it ended with its statement',
      'one transaction from (1) to (4)',
    ],
    [made.differentLocks, 'check-then-insert', 'advisory 0:1', 'lock the same key'],
    [made.oldSnapshot, 'check-then-insert', 'a snapshot from before the wait', 'READ COMMITTED'],
    [made.uniqueCheck, 'check-then-insert', 'no rows', 'CREATE UNIQUE INDEX ON accounts (email)'],
  ])('%#', (report, anomaly, why, fix) => {
    const found = explained(report)
    expect(found.anomaly).toBe(anomaly)
    expect(found.why).toContain(why)
    const fixes = found.fixes.map(({ text, code = '' }) => `${text} ${code}`)
    expect(fixes.join('\n')).toContain(fix)
  })

  test('marks the stale read, the commit that overtook it, and the write', () => {
    const { marks } = explained(made.quota)
    expect([...marks].map(([step, { role }]) => [step + 1, role])).toEqual([
      [7, 'stale-write'],
      [2, 'stale-read'],
      [6, 'overtaking'],
    ])
  })
})

describe('names nothing that is not there', () => {
  const quotaRun = made.quota.failure as Failure

  /** The same statements in another order. */
  function inOrder(...numbers: readonly number[]): Report {
    const play = made.quotaPlay
    const lines = numbers.map((number) => play.lines[number - 1] as (typeof play.lines)[number])
    return { ...made.quota, failure: { ...quotaRun, run: runOf({ ...play, lines }) } }
  }

  test('one after the other, no read was overtaken', () => {
    expect(explained(inOrder(3, 4, 5, 6, 1, 2, 7, 8))).toMatchObject({
      anomaly: 'unknown',
      fixes: [],
    })
    expect(explained(inOrder(1, 2, 7, 8, 3, 4, 5, 6))).toMatchObject({ anomaly: 'unknown' })
    // The control of this control: the race as it was.
    expect(explained(inOrder(1, 2, 3, 4, 5, 6, 7, 8)).anomaly).toBe('check-then-insert')
  })

  test('a write that was rolled back relied on nothing', () => {
    const lines = made.quotaPlay.lines.with(7, { who: 'alice', sql: 'ROLLBACK' })
    const report = {
      ...made.quota,
      failure: { ...quotaRun, run: runOf({ ...made.quotaPlay, lines }) },
    }
    const { found } = explained(report)
    expect(found.write?.who).not.toBe('alice')
  })

  test('a row that was waited for and read again is not stale', () => {
    const locked = explained(made.lockedProperly)
    expect(locked.anomaly).toBe('unknown')
  })
})
