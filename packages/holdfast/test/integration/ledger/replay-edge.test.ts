import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import {
  callApply,
  callApplyOne,
  columnsOf,
  honestLine,
  type RawLine,
} from '../../support/ledger-raw.ts'

/** A retry that arrives when the calendar window of the first attempt is over. */
const fixture = ledgerFixture()

const line = (change: Partial<RawLine> = {}): RawLine => ({
  ...honestLine(fresh(), 'windowed', fresh()),
  kind: 2,
  allowance: '10',
  // The shortest window there is; the library offers minutes and longer.
  unit: 'second',
  zone: 'UTC',
  ...change,
})

/** Waits, on the server's clock, until the next window has begun. */
async function nextWindow(): Promise<void> {
  await fixture.observer.query(
    "SELECT pg_sleep_until(date_trunc('second', clock_timestamp()) + interval '1 second')",
  )
}

describe('across the edge of a window', () => {
  test('the same operation is a replay, alone and with others', async () => {
    const first = line()
    expect(await callApplyOne(fixture.pool, first)).toBe(0)
    await nextWindow()
    expect(await callApplyOne(fixture.pool, first)).toBe(1)
    expect(await callApply(fixture.pool, columnsOf([first, { ...line(), op: 1 }]))).toEqual([1, 0])
  })

  test('another amount is a conflict, and a new operation has a new window', async () => {
    const first = line()
    expect(await callApply(fixture.pool, columnsOf([first]))).toEqual([0])
    await nextWindow()
    expect(await callApply(fixture.pool, columnsOf([{ ...first, amount: '6' }]))).toEqual([3])
    const second = { ...first, ...idOf(fresh()), amount: '10' }
    expect(await callApply(fixture.pool, columnsOf([second]))).toEqual([0])
  })

  test('what was used is given back to the window it was taken from, once', async () => {
    const first = line()
    expect(await callApply(fixture.pool, columnsOf([first]))).toEqual([0])
    await nextWindow()
    const refund = { ...first, ...idOf(fresh()), kind: 7, ref: first.id }
    expect(await callApply(fixture.pool, columnsOf([refund]))).toEqual([0])
    expect(await callApply(fixture.pool, columnsOf([refund]))).toEqual([1])
    expect(await callApply(fixture.pool, columnsOf([{ ...refund, ...idOf(fresh()) }]))).toEqual([7])
    expect(await brokenInvariants(fixture.observer)).toEqual([])
  })
})

function idOf(id: string): Pick<RawLine, 'id' | 'operationId'> {
  return { id, operationId: id }
}
