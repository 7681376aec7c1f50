import { describe, expect, test } from 'vitest'
import type { Failure, Report, Run } from '../../../src/core/model.ts'
import { type Explanation, explainFailure } from '../../../src/report/explain.ts'
import { type Line, type Play, runOf } from '../../support/play.ts'
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
      'SELECT 1 FROM users WHERE id = 1 FOR UPDATE',
    ],
    [
      made.lostUpdate,
      'lost update',
      'while bob waited with its own write (6)',
      "SET qty = qty - 1 WHERE sku = 'A-1' AND qty >= 1",
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
      'in a table where it is unique',
    ],
    [made.readSkew, 'read skew', 'two halves of a change', 'REPEATABLE READ'],
    [
      made.staleCheck,
      'stale check',
      "bob's COMMIT (5) changed it before alice wrote (6)",
      'SELECT … FROM users WHERE id = 3 FOR UPDATE',
    ],
    [
      made.duplicate,
      'unhandled duplicate',
      'error 23505 ended the flow',
      'INSERT INTO accounts … ON CONFLICT',
    ],
    [made.notRetried, 'unhandled serialization failure', 'nothing ran', 'again after 40001'],
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

describe('X16: the story is that of the steps', () => {
  const row = 'public.page#id=1'
  const read = (who: string, version: string): Line => ({
    who,
    sql: 'SELECT version, body FROM page WHERE id = 1',
    touches: { read: row },
    rows: [
      ['version', 'body'],
      [version, 'x'],
    ],
  })
  const write = (who: string, sql: string, touched = row): Line => ({
    who,
    sql,
    half: 'execute',
    touches: { lock: touched },
  })
  const commit = (who: string): Line => ({ who, sql: '', half: 'commit' })
  const told = (...lines: readonly Line[]): Explanation =>
    explained(
      made.raceReport({ name: 'save', play: { flows: ['alice', 'bob'], lines }, known: [page] }),
    )
  const page = made.known('page', {
    id: 'int4',
    n: 'int4',
    used: 'bool',
    status: 'text',
    owner: 'text',
    tags: 'text',
    data: 'jsonb',
  })
  const save = (version: number): string =>
    `UPDATE page SET body = 'y', version = ${version + 1} WHERE id = 1 AND version = ${version}`

  test('a lost update of one row is no write skew, whatever else its WHERE names', () => {
    const { anomaly } = told(
      read('alice', '1'),
      read('bob', '1'),
      write('bob', save(1)),
      commit('bob'),
      write('alice', save(2)),
      commit('alice'),
    )
    expect(anomaly).toBe('lost update')
  })

  test('different rows of one table are a write skew', () => {
    const all: Line = { ...read('alice', '1'), touches: { read: 'public.page' } }
    const { anomaly, cycle } = told(
      all,
      { ...all, who: 'bob' },
      write('bob', `UPDATE page SET body = 'y' WHERE id = 1`),
      commit('bob'),
      write('alice', `UPDATE page SET body = 'y' WHERE id = 2`, 'public.page#id=2'),
      commit('alice'),
    )
    expect(anomaly).toBe('write skew')
    expect(cycle).toEqual([
      "alice before bob: alice's SELECT (1) did not see what bob's COMMIT (4) made of page",
      "bob before alice: bob's SELECT (2) did not see what alice's COMMIT (6) made of page",
    ])
  })

  test('an UPDATE that matched no row has replaced nothing', () => {
    const lines = [
      read('alice', '1'),
      read('bob', '1'),
      write('bob', save(1)),
      commit('bob'),
      { ...write('alice', save(1)), tag: 'UPDATE 0' },
      commit('alice'),
    ]
    const { anomaly, why, fixes } = told(...lines)
    expect(anomaly).toBe('stale check')
    expect(why).toContain('which then found nothing to update')
    expect(why).not.toContain('replaced')
    expect(fixes[0]?.text).toContain("Look at how many rows alice's UPDATE (5) changed")
  })

  test.each([
    // Whether it is set or changed by so much nobody knows.
    ['a number', ['n', '100'], 'n = 70', 'SET n = 70 WHERE id = 1 AND n = 100'],
    ['a flag', ['used', 'f'], 'used = true', 'SET used = true WHERE id = 1 AND used = false'],
    ['a state', ['status', 'new'], "status = 'paid'", "AND status = 'new'"],
    ['nobody', ['owner', null], "owner = 'a'", 'AND owner IS NULL'],
    ['a text that grows', ['tags', 'a'], "tags = 'a,b'", "AND tags = 'a'"],
    ['a document', ['data', '{}'], `data = '{"a":1}'`, "AND data = '{}'"],
  ])('the fix fits what was written: %s', (_, [column, value], set, code) => {
    const looked = (who: string): Line => ({
      who,
      sql: `SELECT ${column} FROM page WHERE id = 1`,
      touches: { read: row },
      rows: [[column as string], [value as string | null]],
    })
    const sql = `UPDATE page SET ${set} WHERE id = 1`
    const { fixes } = told(
      looked('alice'),
      looked('bob'),
      write('bob', sql),
      commit('bob'),
      write('alice', sql),
      commit('alice'),
    )
    expect(fixes[0]?.code).toContain(code)
    expect(fixes.map(({ code: one }) => one ?? '').join()).not.toContain('hf.guard')
  })

  test.each([
    ['is taken away', '100', 'n = 70', ['70', 'n = 40'], 'SET n = n - 30 WHERE id = 1 AND n >= 30'],
    ['is added', '100', 'n = 150', ['150', 'n = 200'], 'SET n = n + 50 WHERE id = 1'],
    ['is set', '100', 'n = 150', ['120', 'n = 150'], 'SET n = 150 WHERE id = 1 AND n = 100'],
  ])('a number that %s', (_, value, set, [later, setLater], code) => {
    const looked = (who: string, n = value): Line => ({
      who,
      sql: 'SELECT n FROM page WHERE id = 1',
      touches: { read: row },
      rows: [['n'], [n]],
    })
    const change = (who: string, to = set): Line => write(who, `UPDATE page SET ${to} WHERE id = 1`)
    const play = (...lines: readonly Line[]): Play => ({ flows: ['alice', 'bob'], lines })
    const racing = play(
      looked('alice'),
      looked('bob'),
      change('bob'),
      commit('bob'),
      change('alice'),
      commit('alice'),
    )
    const inTurn = (first: string, second: string): Pick<Run, 'steps'> =>
      runOf(
        play(
          looked(first),
          change(first),
          commit(first),
          looked(second, later as string),
          change(second, setLater as string),
          commit(second),
        ),
      )
    const serial = [inTurn('alice', 'bob'), inTurn('bob', 'alice')].map(({ steps }) => ({ steps }))
    const report = made.raceReport({ name: 'save', play: racing, serial, known: [page] })
    expect(explained(report).fixes[0]?.code).toContain(code)
  })

  test('the guard is a way out for those who have Holdfast, or where nothing simpler is', () => {
    const codes = (report: Report): string =>
      explained(report)
        .fixes.map(({ code }) => code ?? '')
        .join()
    expect(codes(made.quota)).not.toContain('hf.guard')
    const { run } = made.quota.failure as Failure
    const marked = run.steps.map((step) => ({
      ...step,
      statements: step.statements.map((sql) => sql.replace('BEGIN', 'BEGIN /* holdfast */')),
    }))
    const failure = { ...(made.quota.failure as Failure), run: { ...run, steps: marked } }
    expect(codes({ ...made.quota, failure })).toContain("lockKey('user', userId)")
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
