import { barrier, sample, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { accountId } from '../../../src/ledger/account-id.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { pidOf } from '../../support/pg-fixture.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const room = creditsRoom(fixture, 'credits')

/** The same choices in every run, so that a failure can be looked at again. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

describe('many callers on one account', () => {
  test('spend what there is and not one unit more, each unit from one grant', async () => {
    const key = fresh()
    const credits = fixture
      .create({ ledger: { coalesce: false } })
      .credits({ name: 'credits', overrun: 'refuse' })
    for (let n = 0; n < 8; n += 1) {
      await credits.grant(key, 25, { operationId: `grant ${n}`, priority: n % 3 })
    }
    const spenders = 16
    const start = barrier(spenders)
    const spent = await Promise.all(
      Array.from({ length: spenders }, async (_, caller) => {
        await start()
        let sum = 0
        for (let n = 0; n < 10; n += 1) {
          const verdict = await credits.spend(key, 3, { operationId: `${caller}/${n}` })
          if (verdict.ok) sum += 3
        }
        return sum
      }),
    )
    expect(spent.reduce((sum, one) => sum + one, 0)).toBe(198)
    expect((await credits.grants(key)).map(({ remaining }) => remaining)).toEqual([2])
    await room.assertAddsUp()
  })

  test.each(sample([1, 2, 3]))('add up whatever they do at once, seed %i', async (seed) => {
    const credits = fixture
      .create({ ledger: { coalesce: seed % 2 === 0 } })
      .credits({ name: 'credits', overdraft: 40 })
    const keys = [fresh(), fresh()]
    const callers = 12
    const start = barrier(callers)
    await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const roll = dice(seed * 1_000 + caller)
        const spent: string[] = []
        const grants: string[] = []
        const holds: string[] = []
        const key = keys[caller % 2] as string
        await start()
        for (let n = 0; n < 25; n += 1) {
          const operationId = `${seed}/${caller}/${n}`
          const acts: (() => Promise<unknown>)[] = [
            async () => {
              const terms = [
                { expiresIn: 5 + roll(60) },
                { expiresIn: 5 + roll(60), rollover: { limit: 10, for: 20 } },
                { priority: roll(4) },
                { effectiveAt: new Date(Date.now() + roll(60)), expiresIn: 30 },
              ][roll(4)]
              await credits.grant(key, 1 + roll(40), { operationId, ...terms })
              grants.push(operationId)
            },
            async () => {
              const verdict = await credits.spend(key, 1 + roll(15), { operationId })
              if (verdict.ok) spent.push(operationId)
            },
            async () => {
              const verdict = await credits.hold(key, 1 + roll(15), {
                operationId,
                ttl: 1 + roll(50),
              })
              if (!verdict.ok) return
              holds.push(verdict.holdId as string)
              spent.push(operationId)
            },
            async () => {
              const hold = holds.pop()
              if (hold === undefined) return
              await (roll(2) === 0 ? credits.release(hold) : credits.settle(hold, roll(25)))
            },
            async () => {
              const of = spent[roll(spent.length)]
              if (of !== undefined) await credits.refund(key, 1 + roll(6), { operationId, of })
            },
            async () => {
              const grant = grants[roll(grants.length)]
              if (grant !== undefined && roll(3) === 0) {
                await credits.voidGrant(key, grant, { operationId })
              }
            },
            async () => await fixture.observer.query('SELECT holdfast.sweep(50)'),
          ]
          await acts[roll(acts.length)]?.()
        }
      }),
    )
    await room.assertAddsUp()
    // Wait for nothing: whatever is still due later adds up as well once it is.
    for (const key of keys) {
      await room.makeHoldsDue(key)
      await credits.grants(key)
    }
    await room.assertAddsUp()
    const { rows } = await fixture.observer.query<{ kinds: number }>(
      'SELECT count(DISTINCT kind)::int AS kinds FROM holdfast.movement',
    )
    expect(rows[0]?.kinds).toBeGreaterThan(7)
  })

  test('repeated refunds and settlements give back once', async () => {
    const credits = fixture.create({ ledger: { coalesce: false } }).credits({ name: 'credits' })
    const key = fresh()
    await credits.grant(key, 100, { operationId: 'grant' })
    await credits.spend(key, 50, { operationId: 'spend' })
    const held = await credits.hold(key, 50, { operationId: 'hold', ttl: '1 h' })
    const start = barrier(12)
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (_, n): Promise<Verdict<number>> => {
        await start()
        if (n < 4) return credits.refund(key, 50, { operationId: 'refund', of: 'spend' })
        if (n < 8) return credits.refund(key, 50, { operationId: `refund ${n}`, of: 'spend' })
        return credits.settle(held.ok ? (held.holdId as string) : '', 20)
      }),
    )
    expect(answers.filter((verdict) => verdict.ok && !verdict.replayed)).toHaveLength(2)
    expect(await room.grants(key)).toEqual({ grant: '20/80/0' })
    await room.assertAddsUp()
  })
})

describe('the lock of the account', () => {
  /** Two draw from one grant; the second reads while the first has not committed. */
  async function twoDraws(locked: boolean): Promise<string[]> {
    const key = fresh()
    const credits = fixture.hf.credits({ name: 'credits' })
    await credits.grant(key, 10, { operationId: 'grant' })
    const { bucket, base } = accountId(key, 'credits', key)
    const [first, second] = [
      new pg.Client(fixture.database.directUrl),
      new pg.Client(fixture.database.directUrl),
    ]
    await Promise.all([first.connect(), second.connect()])
    const draw = async (client: pg.Client, seq: number): Promise<void> => {
      if (locked) {
        await client.query(
          'SELECT FROM holdfast.balance WHERE bucket = $1 AND account = $2 FOR NO KEY UPDATE',
          [bucket, base],
        )
      }
      await client.query('SELECT holdfast.draw_grants($1::smallint, $2, $3, 4, false, NULL)', [
        bucket,
        base,
        seq,
      ])
    }
    try {
      const pid = await pidOf(second)
      await first.query('BEGIN')
      await draw(first, 101)
      await second.query('BEGIN')
      const drawn = draw(second, 102)
      await waitUntilBlocked(fixture.observer, pid)
      await first.query('COMMIT')
      await drawn
      await second.query('COMMIT')
    } finally {
      await Promise.all([first.end(), second.end()])
    }
    const { rows } = await fixture.observer.query<{ problem: string }>(
      `SELECT problem FROM holdfast.check_grants($1::smallint, $1::smallint)
       WHERE account = $2 AND problem LIKE 'grant %'`,
      [bucket, base],
    )
    return rows.map(({ problem }) => problem)
  }

  test('makes two draws from one grant add up', async () => {
    expect(await twoDraws(true)).toEqual([])
  })

  test('control: without it, the same two draws do not', async () => {
    expect(await twoDraws(false)).toHaveLength(1)
  })
})

describe('control: the check finds', () => {
  const spoilt: readonly [string, string, RegExp][] = [
    ['a unit too many', 'UPDATE holdfast.credit_grant SET remaining = remaining + 1', /remain/],
    ['a draw that is forgotten', 'DELETE FROM holdfast.allocation', /grant .* were used/],
    ['a share that is gone', `UPDATE holdfast.allocation SET returned = amount`, /hold .* noted/],
    [
      'a balance of its own',
      'UPDATE holdfast.balance SET credited = credited + 1',
      /the balance has/,
    ],
    ['a due time that is missed', `UPDATE holdfast.balance SET due_at = 'infinity'`, /falls due/],
    ['a grant that is gone', 'DELETE FROM holdfast.credit_grant', /does not exist/],
  ]

  test.each(spoilt)('%s', async (_, spoil, problem) => {
    const credits = fixture.hf.credits({ name: 'credits' })
    const key = fresh()
    const { base } = accountId(key, 'credits', key)
    await credits.grant(key, 10, { operationId: 'grant', expiresIn: '1 h' })
    await credits.hold(key, 6, { operationId: 'hold', ttl: '1 h' })
    const client = await fixture.observer.connect()
    try {
      await client.query('BEGIN')
      await client.query(`ALTER TABLE holdfast.credit_grant DROP CONSTRAINT credit_grant_adds_up`)
      await client.query(`${spoil} WHERE account = '${base}'`)
      const { rows } = await client.query<{ problem: string }>(
        'SELECT problem FROM holdfast.check_grants() WHERE account = $1',
        [base],
      )
      expect(rows.map((row) => row.problem).join('\n')).toMatch(problem)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  })
})
