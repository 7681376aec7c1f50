/** What the search says about flows of the model. */
import { describe, expect, test } from 'vitest'
import type { Run, Runner } from '../../../src/core/model.ts'
import { preemptionsOf } from '../../../src/search/linear.ts'
import { type Findings, type SearchOptions, search } from '../../../src/search/search.ts'
import { ModelError, type Statement } from './model-database.ts'
import { type ModelFlow, type ModelOptions, modelRunner } from './model-runner.ts'
import { rows } from './scripts.ts'

const begin: Statement = { op: 'begin' }
const commit: Statement = { op: 'commit' }
const row = 't#k=0'

function look(
  flows: Readonly<Record<string, ModelFlow>>,
  options: Partial<SearchOptions> = {},
  model: ModelOptions = {},
): Promise<Findings> {
  return searchOn(modelRunner(flows, { rows, ...model }), options)
}

function searchOn(runner: Runner, options: Partial<SearchOptions> = {}): Promise<Findings> {
  return search(runner, { budget: { schedules: 2_000, ms: 60_000 }, oracle: true, ...options })
}

const naive: ModelFlow = function* () {
  yield begin
  const seen = yield { op: 'read', row }
  yield { op: 'set', row, to: seen + 1 }
  yield commit
  return seen + 1
}

const locked: ModelFlow = function* () {
  yield begin
  const seen = yield { op: 'lock', row }
  yield { op: 'set', row, to: seen + 1 }
  yield commit
  return seen + 1
}

const repeatable: ModelFlow = function* () {
  yield { op: 'begin', isolation: 'repeatable read' }
  const seen = yield { op: 'read', row }
  yield { op: 'set', row, to: seen + 1 }
  yield commit
  return seen + 1
}

/** Takes two locks in the given order. */
function taking(first: string, second: string): ModelFlow {
  return function* () {
    yield begin
    yield { op: 'advisory', key: first }
    yield { op: 'advisory', key: second }
    yield { op: 'add', row, by: 1 }
    yield commit
    return 0
  }
}

const reserveThenCharge: ModelFlow = function* () {
  yield begin
  yield { op: 'add', row, by: -1 }
  yield commit
  yield begin
  yield { op: 'add', row: 'u#k=0', by: 1 }
  yield commit
  return 0
}

/** Meets nobody. */
const aside: ModelFlow = function* () {
  return yield { op: 'read', row: 'u#k=0' }
}
const asides = { c: aside, d: aside, e: aside, f: aside }

describe('more flows than all serial orders are run of', () => {
  test('a race of two is not called free of races', async () => {
    const { verdict, coverage, notes } = await look({ alice: naive, bob: naive, ...asides })
    expect(verdict).toBe('bounded')
    expect(coverage.missBound).toBe(undefined)
    expect(notes.map(({ kind }) => kind)).toEqual(['unjudged'])
  })

  test('what ends as the flows did one after the other is', async () => {
    const { verdict, notes } = await look({ alice: locked, bob: locked, ...asides })
    expect(verdict).toBe('race-free')
    expect(notes).toEqual([])
  })

  test('six who meet are judged by the orders in which they ended', async () => {
    const all = { a: locked, b: locked, c: locked, d: locked, e: locked, f: locked }
    const { notes } = await look(all, { budget: { schedules: 200, ms: 60_000 } })
    expect(notes).toEqual([])
  })
})

describe('a race', () => {
  test('is found without an invariant, soon, in the order that shows it best', async () => {
    const { verdict, failure, coverage } = await look({ alice: naive, bob: naive })
    expect(verdict).toBe('race')
    expect(failure?.kind).toBe('not-serial')
    expect(failure?.reproduced).toEqual([5, 5])
    expect(coverage.schedules).toBeLessThanOrEqual(6)
    expect(coverage.exhaustive).toBe(false)
    const texts = failure?.run.steps.map(({ flow, statements }) => `${flow} ${statements[0]}`)
    expect(texts?.slice(0, 4)).toEqual(['0 begin', '0 read t#k=0', '1 begin', '1 read t#k=0'])
    expect(preemptionsOf(failure?.run as Run)).toBe(1)
  })

  test('is found by an invariant, whose words are told', async () => {
    const invariant = (state: string): string | undefined =>
      state.includes('t#k=0:3') ? undefined : 'an update was lost'
    const flows = { alice: naive, bob: naive }
    const { failure } = await look(flows, { oracle: false }, { invariant })
    expect(failure).toMatchObject({ kind: 'invariant', message: 'an update was lost' })
  })

  test('is not there once the row is locked: every class was run', async () => {
    const { verdict, coverage, notes } = await look({ alice: locked, bob: locked })
    expect(verdict).toBe('race-free')
    expect(coverage).toMatchObject({ exhaustive: true, classes: 6, overlapped: true })
    expect(coverage.interleavings).toBe(70n)
    expect(coverage.blockedEpisodes).toBeGreaterThan(0)
    expect(notes).toEqual([])
  })

  test('is not what an invariant finds that fails serially', async () => {
    const { verdict, trouble } = await look(
      { alice: locked, bob: locked },
      {},
      { invariant: () => 'no' },
    )
    expect(verdict).toBe('inconclusive')
    expect(trouble).toMatchObject({ kind: 'fails-serially' })
    expect(trouble?.message).toContain('in the order alice, bob: no')
  })

  test('is not a flow that throws and leaves nothing behind', async () => {
    const { verdict, notes } = await look({ alice: repeatable, bob: repeatable })
    expect(verdict).toBe('race-free')
    expect(notes.map(({ kind }) => kind)).toEqual(['refused', 'refused'])
    expect(notes[0]?.message).toContain('threw 40001')
  })

  test('is a flow that throws what is no refusal, even if it leaves nothing behind', async () => {
    const confused: ModelFlow = function* () {
      try {
        return yield* repeatable()
      } catch {
        throw new ModelError('25P02')
      }
    }
    const { failure } = await look({ alice: confused, bob: confused })
    expect(failure?.kind).toBe('not-serial')
    expect(failure?.message).toMatch(
      /^(alice|bob) threw 25P02.*an error that no serial order gives/,
    )
  })

  test('is a flow that throws and has left something behind', async () => {
    const halves: ModelFlow = function* () {
      yield begin
      yield { op: 'append', table: 'u', value: 1 }
      yield commit
      return yield* repeatable()
    }
    const { failure } = await look({ alice: halves, bob: halves })
    expect(failure?.kind).toBe('not-serial')
  })
})

describe('a deadlock', () => {
  const flows = {
    alice: taking('advisory 1', 'advisory 2'),
    bob: taking('advisory 2', 'advisory 1'),
  }

  test.each(['choice', 'closer'] as const)('is told and is no failure (%s)', async (deadlock) => {
    const { verdict, coverage, notes } = await look(flows, {}, { deadlock })
    expect(verdict).toBe('race-free')
    expect(coverage.deadlocks).toBeGreaterThan(0)
    expect(notes.map(({ kind }) => kind).toSorted()).toEqual(['deadlock', 'refused', 'refused'])
  })

  test('is a failure if asked for', async () => {
    const { failure } = await look(flows, { deadlocks: 'fail' })
    expect(failure).toMatchObject({ kind: 'deadlock', reproduced: [5, 5] })
  })

  test('does not happen if the locks are taken in one order', async () => {
    const ordered = taking('advisory 1', 'advisory 2')
    const { verdict, coverage } = await look(
      { alice: ordered, bob: ordered },
      { deadlocks: 'fail' },
    )
    expect(verdict).toBe('race-free')
    expect(coverage.deadlocks).toBe(0)
  })
})

describe('chance', () => {
  test('in what a flow sends is told, and nothing is claimed', async () => {
    let draws = 0
    const drawing: ModelFlow = function* () {
      yield begin
      yield { op: 'read', row: draws++ % 3 === 0 ? 't#k=0' : 't#k=1' }
      yield commit
      return 0
    }
    const { verdict, coverage, notes } = await look({ alice: drawing, bob: locked })
    expect(verdict).toBe('bounded')
    expect(coverage.exhaustive).toBe(false)
    expect(notes[0]).toMatchObject({ kind: 'nondeterminism' })
    expect(notes[0]?.message).toContain('alice sent something else')
  })

  test('in what a flow returns is not compared, and nothing is claimed', async () => {
    let draws = 0
    const drawing: ModelFlow = function* () {
      yield* locked()
      return draws++
    }
    const { verdict, notes } = await look({ alice: drawing, bob: locked })
    expect(verdict).toBe('bounded')
    expect(notes[0]?.message).toContain('what alice returned')
    // The control: what is returned by the same rule every time is compared.
    const racing = await look({ alice: naive, bob: naive })
    expect(racing.verdict).toBe('race')
  })

  test('in a column is not compared, and nothing is claimed', async () => {
    const inner = modelRunner({ alice: locked, bob: locked }, { rows })
    let draws = 0
    const runner: Runner = {
      flows: inner.flows,
      run: async (decide, only) => {
        const run = await inner.run(decide, only)
        const tables = [
          { name: 't', columns: ['k', 'token'], rows: [[run.state, String(draws++)]] },
        ]
        const state = JSON.stringify(tables)
        return { ...run, tables, state, digest: JSON.stringify([state, '', '']) }
      },
    }
    const { verdict, notes } = await searchOn(runner)
    expect(verdict).toBe('bounded')
    expect(notes[0]?.message).toContain('t.token')
  })
})

describe('a small budget', () => {
  const flows = { alice: locked, bob: locked, carol: locked, dave: locked }

  test('leads to a bound and to a chance of having missed something', async () => {
    const { verdict, coverage } = await look(flows, { budget: { schedules: 200, ms: 60_000 } })
    expect(verdict).toBe('bounded')
    expect(coverage.schedules).toBe(200)
    expect(coverage.exhaustive).toBe(false)
    expect(coverage.missBound?.depth).toBe(2)
    expect(coverage.missBound?.atMost).toBeGreaterThan(0)
    expect(coverage.missBound?.atMost).toBeLessThan(1)
  })

  test('is enough to find what random orders find', async () => {
    const many = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, naive]))
    const { failure, coverage } = await look(many, { budget: { schedules: 60, ms: 60_000 } })
    // Six flows have too many serial orders to compare with all of them.
    expect(failure).toBeUndefined()
    expect(coverage.schedules).toBeGreaterThanOrEqual(60)
    expect(coverage.schedules).toBeLessThan(70)
    const invariant = (state: string): string | undefined =>
      state.includes('t#k=0:7') ? undefined : 'an update was lost'
    const told = await look(many, { budget: { schedules: 60, ms: 60_000 } }, { invariant })
    expect(told.failure?.kind).toBe('invariant')
    expect(told.coverage.schedules).toBeLessThan(60)
  })
})

describe('flows that are alike', () => {
  test('are not run in orders that only swap them', async () => {
    const flows = { alice: locked, bob: locked, carol: locked }
    const all = await look(flows)
    const few = await look(flows, { symmetric: [[0, 1, 2]] })
    expect(all.coverage).toMatchObject({ exhaustive: true, classes: 72 })
    expect(few.verdict).toBe('race-free')
    expect(few.coverage.classes).toBeLessThan(20)
    const racing = await look({ alice: naive, bob: naive }, { symmetric: [[0, 1]] })
    expect(racing.verdict).toBe('race')
  })
})

describe('crashes', () => {
  test('are survived by one transaction', async () => {
    const { verdict, coverage } = await look({ alice: locked, bob: locked }, { crash: true })
    expect(verdict).toBe('race-free')
    // Before each of four statements and after the commit, of each flow, in each of two orders at least.
    expect(coverage.crashPoints).toBeGreaterThanOrEqual(20)
  })

  test('are not survived by a flow of two', async () => {
    const flows = { alice: reserveThenCharge, bob: reserveThenCharge }
    expect((await look(flows)).verdict).toBe('race-free')
    const { verdict, failure } = await look(flows, { crash: true })
    expect(verdict).toBe('race')
    expect(failure).toMatchObject({ kind: 'crash', reproduced: [5, 5] })
    expect(failure?.message).toMatch(/^alice crashed after its statement 3, before the answer/)
  })
})

describe('a token', () => {
  const flows = { alice: naive, bob: naive }

  test('leads to the same failure at once', async () => {
    const first = await look(flows)
    const again = await look(flows, { replay: first.failure?.token ?? '' })
    expect(again.failure).toMatchObject({ token: first.failure?.token, reproduced: [5, 5] })
    // Only the serial runs were counted.
    expect(again.coverage.schedules).toBe(2)
  })

  test('of other code is told, and a search is made', async () => {
    const token = (await look(flows)).failure?.token ?? ''
    const { verdict, notes } = await look({ alice: locked, bob: locked }, { replay: token })
    expect(verdict).toBe('race-free')
    expect(notes[0]).toMatchObject({ kind: 'stale-token' })
    expect(notes[0]?.message).toContain('code has changed')
  })

  test('that is none is refused', async () => {
    await expect(look(flows, { replay: 'r1.a4' })).rejects.toThrow('not a replay token')
  })
})

test('trouble is no race and no proof', async () => {
  const inner = modelRunner({ alice: locked, bob: locked }, { rows })
  let runs = 0
  const runner: Runner = {
    flows: inner.flows,
    run: async (decide) => {
      const run = await inner.run(decide)
      if (++runs <= 3) return run
      return { ...run, trouble: { kind: 'hung-flow', message: 'alice hangs' } }
    },
  }
  const { verdict, trouble, coverage } = await searchOn(runner)
  expect(verdict).toBe('inconclusive')
  expect(trouble).toMatchObject({ kind: 'hung-flow' })
  expect(coverage.schedules).toBeLessThan(12)
})

test('flows that send nothing prove nothing', async () => {
  // oxlint-disable-next-line require-yield
  const silent: ModelFlow = function* () {
    return 1
  }
  const { verdict, trouble } = await look({ alice: locked, bob: silent })
  expect(verdict).toBe('vacuous')
  expect(trouble).toMatchObject({ kind: 'nothing-sent' })
  expect(trouble?.message).toContain('bob sent no statement')
})
