import { describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import type { PreparedLine } from '../../../src/ledger/book.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import type pg from 'pg'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { creditsRoom } from './credits-room.ts'

/** Operations of several lines on accounts with grants, where some of it lapses or is known already. */
const fixture = ledgerFixture()

interface Place {
  readonly key: string
  readonly credits: Credits<pg.PoolClient, number>
  readonly room: ReturnType<typeof creditsRoom>
  apply(...lines: (PreparedLine | Promise<PreparedLine>)[]): Promise<Verdict<number>>
  available(): Promise<number>
}

function place(overdraft = 0): Place {
  const [name, key] = [fresh(), fresh()]
  const credits = fixture.hf.credits({ name, overdraft })
  return {
    key,
    credits,
    room: creditsRoom(fixture, name),
    apply: async (...lines) =>
      await fixture.hf.ledger.apply(await Promise.all(lines.map(async (line) => await line)), {
        operationId: fresh(),
        scope: key,
      }),
    available: async () => (await credits.balance(key)).available,
  }
}

/** A grant that was spent by the operation `spent` and has ended: what is refunded of it lapses. */
async function ended({ key, credits }: Place): Promise<void> {
  await credits.grant(key, 10, { operationId: 'gone' })
  await credits.spend(key, 10, { operationId: 'spent' })
  await credits.voidGrant(key, 'gone', { operationId: 'void' })
}

describe('when a hold of several lines expires', () => {
  test.each([['1 h', '2 h'] as const, ['2 h', '1 h'] as const])(
    'is the first: %s, %s',
    async (...ttls) => {
      const { key, credits } = place()
      const keys = [key, fresh()]
      for (const one of keys) await credits.grant(one, 10, { operationId: one, scope: key })
      const held = async (order: readonly number[]): Promise<number> => {
        const lines = order.map(
          async (at) => await credits.line(keys[at] as string, 1, { ttl: ttls[at] as '1 h' }),
        )
        const how = { operationId: 'hold', scope: key }
        const verdict = await fixture.hf.ledger.apply(await Promise.all(lines), how)
        if (!verdict.ok || verdict.expiresAt === undefined) throw new Error('not held')
        return (verdict.expiresAt.getTime() - verdict.at.getTime()) / 60_000
      }
      expect(await held([0, 1])).toBe(60)
      // A repetition that names them the other way round is told the same.
      expect(await held([1, 0])).toBe(60)
    },
  )

  test('is one for one key', async () => {
    const { key, credits } = place()
    const lines = [
      await credits.line(key, 1, { ttl: '1 h' }),
      await credits.line(key, 1, { ttl: '2 h' }),
    ]
    await expect(
      fixture.hf.ledger.apply(lines, { operationId: 'hold', scope: key }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID', details: { option: 'lines' } })
  })
})

describe('what lapses at once', () => {
  test.each([{}, { ttl: '1 min' } as const])('is not there for another line: %j', async (how) => {
    const at = place()
    await ended(at)
    const { key, credits } = at
    const refused = await at.apply(
      credits.line(key, 10, { of: 'spent' }),
      credits.line(key, 10, how),
    )
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient' })
    const past = { expiresAt: new Date(Date.now() - 60_000) }
    const late = await at.apply(credits.grantLine(key, 100, past), credits.line(key, 50, how))
    expect(late).toMatchObject({ ok: false, reason: 'insufficient' })
    expect(await at.available()).toBe(0)
    await at.room.assertAddsUp(key)
  })

  test('does not become a grant', async () => {
    const at = place()
    await ended(at)
    const { key, credits } = at
    const done = await at.apply(credits.line(key, 10, { of: 'spent' }), credits.grantLine(key, 100))
    expect(done.ok).toBe(true)
    expect([await at.available(), (await credits.grants(key)).length]).toEqual([100, 1])
    await at.room.assertAddsUp(key)
  })

  test('leaves what is owed to what does not', async () => {
    const at = place(10)
    await ended(at)
    const { key, credits } = at
    await credits.grant(key, 10, { operationId: 'kept' })
    await credits.spend(key, 10, { operationId: 'second' })
    await credits.spend(key, 10, { operationId: 'owed' })
    const back = await at.apply(
      credits.line(key, 10, { of: 'spent' }),
      credits.line(key, 10, { of: 'second' }),
    )
    expect([back.ok, await at.available()]).toEqual([true, 10])
    await at.room.assertAddsUp(key)
  })
})

describe('an operation id that another scope or book has used', () => {
  test('is another grant', async () => {
    const [from, to] = [place(), place()]
    await from.credits.grant(from.key, 100, { operationId: 'first' })
    await to.credits.grant(to.key, 30, { operationId: 'same' })
    const sent = await fixture.hf.ledger.transfer(
      { from: [await from.credits.line(from.key, 30)], to: [to.credits.grantLine(to.key, 30)] },
      { operationId: 'same', acrossScopes: true },
    )
    expect(sent).toMatchObject({ ok: true, replayed: false })
    expect([await from.available(), await to.available()]).toEqual([70, 60])
  })

  test('also if it came first', async () => {
    const [from, to] = [place(), place()]
    await from.credits.grant(from.key, 100, { operationId: 'first' })
    await fixture.hf.ledger.transfer(
      { from: [await from.credits.line(from.key, 30)], to: [to.credits.grantLine(to.key, 30)] },
      { operationId: 'same', acrossScopes: true },
    )
    const granted = await to.credits.grant(to.key, 30, { operationId: 'same' })
    expect(granted).toMatchObject({ ok: true, replayed: false, available: 60 })
  })
})

test('a transfer whose id was forgotten is known by its grant, and takes nothing again', async () => {
  const [from, to] = [place(), place()]
  await from.credits.grant(from.key, 100, { operationId: 'first' })
  const send = async (): Promise<Verdict<number>> =>
    await fixture.hf.ledger.transfer(
      { from: [await from.credits.line(from.key, 30)], to: [to.credits.grantLine(to.key, 30)] },
      { operationId: 'again', acrossScopes: true },
    )
  await send()
  await fixture.observer.query('DELETE FROM holdfast.operation')
  expect(await send()).toMatchObject({ ok: true, replayed: true })
  expect([await from.available(), await to.available()]).toEqual([70, 30])
})

test('a refund of two lines from before the first grant is one', async () => {
  const { key, credits, room } = place()
  await fixture.hf.ledger.open(credits.name, [{ key, balance: 100 }], { operationId: fresh() })
  const lines = [await credits.line(key, 10), await credits.line(key, 10, { ttl: '1 min' })]
  const taken = await fixture.hf.ledger.apply(lines, { operationId: 'both', scope: key })
  if (!taken.ok) throw new Error(taken.reason)
  await credits.settle(taken.holdId as string, 10)
  await credits.grant(key, 5, { operationId: fresh(), onlyFor: ['image'] })
  const back = await credits.refund(key, 20, { operationId: fresh(), of: 'both' })
  expect(back).toMatchObject({ ok: true, available: 105 })
  await room.assertAddsUp(key)
})
