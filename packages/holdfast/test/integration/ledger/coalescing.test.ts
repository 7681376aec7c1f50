import { deferred, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Driver, Executor, Statement } from '../../../src/core/driver.ts'
import { holdfastError } from '../../../src/core/errors.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { CombinerOptions } from '../../../src/ledger/sending/combiner-options.ts'
import { createKernel, type Kernel } from '../../../src/ledger/kernel.ts'
import { kinds, type Line } from '../../../src/ledger/operation.ts'
import { numberAmounts, type Verdict } from '../../../src/ledger/verdict.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'

const fixture = ledgerFixture()

/** The real driver, with a gate in front of it that counts what passes. */
interface Gate {
  readonly kernel: Kernel<pg.PoolClient>
  /** Statements sent so far, and at most at the same time. */
  readonly sent: Statement[]
  most(): number
  close(): void
  open(): void
}

function gated(options: CombinerOptions = {}): Gate {
  const driver = fromPg(fixture.pool)
  const sent: Statement[] = []
  let gate = deferred()
  gate.resolve()
  let [now, most] = [0, 0]
  const alone: Executor = {
    async query(statement) {
      sent.push(statement)
      now += 1
      most = Math.max(most, now)
      try {
        await gate.promise
        return await driver.alone.query(statement)
      } finally {
        now -= 1
      }
    },
  }
  const gatedDriver: Driver<pg.PoolClient> = { ...driver, alone }
  return {
    kernel: createKernel(gatedDriver, options),
    sent,
    most: () => most,
    close: () => void (gate = deferred()),
    open: () => gate.resolve(),
  }
}

const debit = async (
  { kernel }: Gate,
  key: string,
  amount: number,
  { operationId = fresh(), ...line }: Partial<Line> & { operationId?: string } = {},
): Promise<Verdict<number>> =>
  await kernel.apply(
    undefined,
    {
      operationId,
      book: 'coalesced',
      lines: [
        {
          kind: kinds.debit,
          book: 'coalesced',
          key,
          amount: String(amount),
          allowance: '10',
          ...line,
        },
      ],
    },
    numberAmounts,
  )

const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at))

/** What a turn of the event loop brings, timers and network included. */
const turn = async (): Promise<void> => {
  const turned = deferred()
  setImmediate(() => turned.resolve())
  await turned.promise
}

describe('when they are sent', () => {
  test('a single one at once: before anything else of this process gets its turn', async () => {
    const gate = gated()
    let turned = false
    setImmediate(() => void (turned = true))
    const verdict = debit(gate, fresh(), 1)
    for (let microtask = 0; gate.sent.length === 0 && microtask < 50; microtask += 1) {
      await Promise.resolve()
    }
    expect([gate.sent.length, turned]).toEqual([1, false])
    expect(await verdict).toMatchObject({ ok: true, available: 9 })
  })

  test('those of the same turn together, in one statement', async () => {
    const gate = gated()
    const key = fresh()
    await debit(gate, key, 1)
    const verdicts = await Promise.all(times(9, async () => await debit(gate, key, 1)))
    expect(gate.sent).toHaveLength(2)
    // Each has its own answer, in the order of their arrival.
    expect(verdicts.map(({ available }) => available)).toEqual(times(9, (at) => 8 - at))
  })

  test('what cannot be dealt with as one set is sent once more, together and in its order', async () => {
    const gate = gated()
    const key = fresh()
    const verdicts = await Promise.all(times(12, async () => await debit(gate, key, 1)))
    expect(gate.sent).toHaveLength(2)
    expect(verdicts.map(({ ok }) => ok)).toEqual(times(12, (at) => at < 10))
    expect(verdicts.slice(0, 10).map(({ available }) => available)).toEqual(
      times(10, (at) => 9 - at),
    )
    expect(verdicts[11]).toMatchObject({ reason: 'insufficient', available: 0 })
    // For a while, the account is not tried that way again.
    await Promise.all(times(3, async () => await debit(gate, key, 1)))
    expect(gate.sent).toHaveLength(3)
  })

  test('those that come while all lanes are busy wait for one, and go together', async () => {
    const gate = gated({ lanes: 1 })
    const key = fresh()
    await debit(gate, key, 1)
    gate.close()
    const first = debit(gate, fresh(), 1)
    await turn()
    const others: Promise<Verdict<number>>[] = []
    for (let late = 0; late < 8; late += 1) {
      others.push(debit(gate, key, 1))
      await turn()
    }
    expect(gate.sent).toHaveLength(2)
    gate.open()
    await Promise.all([first, ...others])
    expect(gate.sent).toHaveLength(3)
  })

  test('control: without coalescing each is a statement of its own, with the same answers', async () => {
    const gate = gated({ coalesce: false })
    const key = fresh()
    const verdicts = await Promise.all(times(12, async () => await debit(gate, key, 1)))
    expect(gate.sent).toHaveLength(12)
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(10)
  })

  test('never more at once than there are lanes, nor more lines than a batch', async () => {
    const gate = gated({ lanes: 3, batch: 40 })
    const keys = times(7, fresh)
    for (const key of keys) await debit(gate, key, 1)
    const verdicts = await Promise.all(
      times(500, async (at) => await debit(gate, keys[at % 7] as string, 1, { allowance: '1000' })),
    )
    expect(verdicts.every(({ ok }) => ok)).toBe(true)
    expect(gate.most()).toBe(3)
    const sizes = gate.sent.slice(7).map(({ values }) => String(values[0]).split(',').length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(40)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(500)
  })

  test('an operation larger than a batch goes alone', async () => {
    const gate = gated({ batch: 2 })
    const [key, operationId] = [fresh(), fresh()]
    const lines = times(5, (at) => ({
      kind: kinds.debit,
      book: 'coalesced',
      key: `${key} ${at}`,
      scope: key,
      amount: '1',
      allowance: '1',
    }))
    const large = gate.kernel.apply(
      undefined,
      { operationId, book: 'coalesced', scope: key, lines },
      numberAmounts,
    )
    const [verdict] = await Promise.all([large, debit(gate, fresh(), 1), debit(gate, fresh(), 1)])
    expect(verdict.ok).toBe(true)
    expect(verdict.lines.map((line) => line.key)).toEqual(lines.map((line) => line.key))
  })
})

describe('the same id more than once', () => {
  test('in the same turn: applied once, and everybody gets that answer', async () => {
    const gate = gated()
    const [key, operationId] = [fresh(), fresh()]
    const verdicts = await Promise.all(
      times(5, async () => await debit(gate, key, 3, { operationId })),
    )
    expect(verdicts.filter(({ replayed }) => !replayed)).toHaveLength(1)
    for (const verdict of verdicts) {
      expect(verdict).toEqual({ ...verdicts[0], replayed: verdict.replayed })
      expect(verdict).toMatchObject({ ok: true, available: 7, sequence: 1 })
    }
  })

  test('in the same turn with another amount: a conflict, and only for that one', async () => {
    const gate = gated()
    const [key, operationId] = [fresh(), fresh()]
    const verdicts = await Promise.all([
      debit(gate, key, 3, { operationId }),
      debit(gate, key, 4, { operationId }),
    ])
    // They may be sent at once, in two lanes: which is first is up to the server.
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(1)
    expect(verdicts.find(({ ok }) => !ok)).toMatchObject({ reason: 'conflict', field: 'amount' })
  })

  test('by many processes at once: applied once', async () => {
    const [key, operationId] = [fresh(), fresh()]
    const verdicts = await Promise.all(
      times(8, async () => await debit(gated(), key, 3, { operationId })),
    )
    expect(verdicts.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(new Set(verdicts.map(({ available }) => available))).toEqual(new Set([7]))
  })

  test('by many at once, for different keys of one scope: one wins, the others conflict', async () => {
    const [scope, operationId] = [fresh(), fresh()]
    const verdicts = await Promise.all(
      times(6, async (at) => {
        const { kernel } = gated()
        const line = { kind: kinds.debit, book: 'coalesced', key: `${scope} ${at}`, scope }
        const lines = [{ ...line, amount: '1', allowance: '5' }]
        const operation = { operationId, book: 'coalesced', scope, lines }
        return await kernel.apply(undefined, operation, numberAmounts)
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(1)
    for (const verdict of verdicts.filter(({ ok }) => !ok)) {
      expect(verdict).toMatchObject({ reason: 'conflict', field: 'key' })
    }
  })
})

describe('one that fails', () => {
  /** The server does not know this time zone, and says so with an error. */
  const broken = { unit: 'day', zone: 'Nowhere/At_All' }

  test.each([0, 7, 19])('does not fail its neighbours (at place %i of 20)', async (place) => {
    const gate = gated({ lanes: 1 })
    const key = fresh()
    const outcomes = await Promise.allSettled(
      times(
        20,
        async (at) => await debit(gate, key, 1, at === place ? broken : { allowance: '30' }),
      ),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(
      times(20, (at) => (at === place ? 'rejected' : 'fulfilled')),
    )
    const sequences = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' && outcome.value.ok ? [outcome.value.sequence] : [],
    )
    expect(sequences.toSorted((a, b) => a - b)).toEqual(times(19, (at) => at + 1))
    // Found by halves.
    expect(gate.sent.length).toBeLessThanOrEqual(12)
  })

  test('several of them fail alone', async () => {
    const gate = gated()
    const key = fresh()
    const outcomes = await Promise.allSettled(
      times(
        16,
        async (at) => await debit(gate, key, 1, at % 3 === 0 ? broken : { allowance: '30' }),
      ),
    )
    expect(outcomes.map(({ status }) => status === 'rejected')).toEqual(
      times(16, (at) => at % 3 === 0),
    )
  })

  test('control: one statement for all fails all', async () => {
    const gate = gated()
    const key = fresh()
    gate.close()
    const all = times(3, async (at) => await debit(gate, key, 1, at === 1 ? broken : {}))
    const settled = Promise.allSettled(all)
    const statement = await waitUntil('sent', () => gate.sent[0])
    await expect(fromPg(fixture.pool).alone.query(statement)).rejects.toMatchObject({
      code: '22023',
    })
    gate.open()
    expect((await settled).filter(({ status }) => status === 'rejected')).toHaveLength(1)
  })
})

test('a lost answer is unknown also if the way it is asked again then fails', async () => {
  const key = fresh()
  const driver = fromPg(fixture.pool)
  const sent: string[] = []
  const alone: Executor = {
    async query(statement) {
      sent.push(statement.text)
      // No connection is to be had for the third: the second said that it leaves out what it knows.
      if (sent.length === 4) throw holdfastError('POOL_STARVED')
      const rows = await driver.alone.query(statement)
      if (sent.length === 2) throw Object.assign(new Error('read'), { code: 'ECONNRESET' })
      return rows
    },
  }
  const gate = { kernel: createKernel({ ...driver, alone }) } as Gate
  await debit(gate, key, 1)
  const outcomes = await Promise.allSettled(times(3, async () => await debit(gate, key, 1)))
  expect(sent[2]).toBe(sent[1])
  expect(sent[3]).not.toBe(sent[1])
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ reason: { code: 'LEDGER_OUTCOME_UNKNOWN' } })
  }
  // It was applied, all of it.
  expect(await debit(gate, key, 1)).toMatchObject({ ok: true, available: 5 })
})

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})
