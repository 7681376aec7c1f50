import { hash } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import { accountId, holdIdOf } from '../../../src/ledger/account-id.ts'
import type { Accepted } from '../../../src/ledger/verdict.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import { callApply, columnsOf, honestLine, type RawLine } from '../../support/ledger-raw.ts'

/** A UUID names the same operation in upper and in lower case. */
const fixture = ledgerFixture()

let quota: Quota<pg.PoolClient, number>
let credits: Credits<pg.PoolClient, number>
beforeAll(() => {
  quota = fixture.hf.quota({ name: 'cased', limit: 100, per: 'lifetime' })
  credits = fixture.hf.credits({ name: 'cased-credits' })
})

/** With letters in it, so that it has a case. */
const lettered = (): string => `abcdefab${fresh().slice(8)}`

describe('S23: an id in another case is the same operation', () => {
  test('a replay, alone, with others and in a transaction of the caller', async () => {
    const [key, id] = [fresh(), lettered()]
    const first = await quota.consume(key, 5, { operationId: id.toUpperCase() })
    expect(first).toMatchObject({ ok: true, replayed: false })
    const again = { ...first, replayed: true }
    const mixed = `${id.slice(0, 4).toUpperCase()}${id.slice(4)}`
    for (const operationId of [id, id.toUpperCase(), mixed]) {
      expect(await quota.consume(key, 5, { operationId })).toEqual(again)
      const [one] = await Promise.all([
        quota.consume(key, 5, { operationId }),
        quota.consume(fresh(), 5, { operationId: fresh() }),
      ])
      expect(one).toEqual(again)
      const joined = fixture.hf.transaction((tx) => quota.consume(tx, key, 5, { operationId }))
      expect(await joined).toEqual(again)
    }
    const refund = { of: id, operationId: fresh() }
    expect(await quota.refund(key, 5, refund)).toMatchObject({ ok: true, available: 100 })
  })

  test('two that come at once are one', async () => {
    const [key, id] = [fresh(), lettered()]
    const both = await Promise.all(
      [id, id.toUpperCase()].map((operationId) => quota.consume(key, 5, { operationId })),
    )
    expect(both.filter((verdict) => verdict.ok && verdict.replayed)).toHaveLength(1)
    expect(await quota.peek(key)).toMatchObject({ available: 95 })
  })

  test('a grant is voided in either', async () => {
    const [key, id] = [fresh(), lettered()]
    await credits.grant(key, 10, { operationId: id })
    const voiding = await credits.voidGrant(key, id.toUpperCase(), { operationId: fresh() })
    expect(voiding).toMatchObject({ ok: true, available: 0 })
  })
})

/** As versions before 0.2 stored them: by the hash of the text, unless that was in lower case. */
describe('S23: what an earlier version stored keeps its id', () => {
  const hashed = (text: string): string =>
    hash('sha256', text).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
  const stored = async (book: string, key: string, change: Partial<RawLine>): Promise<string> => {
    const operationId = lettered().toUpperCase()
    const { bucket, base } = accountId(key, book, key)
    const names = { ...honestLine(key, key, operationId), book, bucket, base, owner: base }
    const line = { ...names, id: hashed(operationId), ...change }
    expect(await callApply(fixture.pool, columnsOf([line]))).toEqual([0])
    return operationId
  }

  test('a replay finds it, and a refund', async () => {
    const key = fresh()
    const operationId = await stored('cased', key, { kind: 2, allowance: '100' })
    const again = await quota.consume(key, 5, { operationId })
    expect(again).toMatchObject({ ok: true, replayed: true, debited: 5 })
    const refund = { of: operationId, operationId: fresh() }
    expect(await quota.refund(key, 5, refund)).toMatchObject({ ok: true, available: 100 })
    expect(await brokenInvariants(fixture.observer)).toEqual([])
  })

  test('a replayed hold is the one that was made, and can be settled', async () => {
    const key = fresh()
    const { bucket, base } = accountId(key, 'cased', key)
    const operationId = lettered().toUpperCase()
    const holdId = holdIdOf(bucket, base, hashed(operationId))
    const hold = { kind: 3, allowance: '100', ttlMs: '3600000', ref: holdId.slice(4) }
    const line = { ...honestLine(key, key, operationId), book: 'cased', base, owner: base, bucket }
    const sent = columnsOf([{ ...line, id: hashed(operationId), ...hold }])
    expect(await callApply(fixture.pool, sent)).toEqual([0])
    const again = await quota.hold(key, 5, { ttl: '1 h', operationId })
    expect(again).toMatchObject({ ok: true, replayed: true, holdId })
    const settled = await quota.settle((again as Accepted<number>).holdId as string)
    expect(settled).toMatchObject({ ok: true, debited: 5, held: 0 })
  })

  test('a grant is voided, also when its operation is forgotten', async () => {
    const key = fresh()
    const operationId = await stored('cased-credits', key, { kind: 8, terms: '{}' })
    const { bucket, base } = accountId(key, 'cased-credits', key)
    await fixture.observer.query(
      'DELETE FROM holdfast.operation WHERE bucket = $1 AND owner = $2',
      [bucket, base],
    )
    const voiding = await credits.voidGrant(key, operationId, { operationId: fresh() })
    expect(voiding).toMatchObject({ ok: true, available: 0 })
  })
})
