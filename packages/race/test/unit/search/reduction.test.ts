/** How few runs stand for how many interleavings. The same counts are tested on PostgreSQL. */
import { describe, expect, test } from 'vitest'
import type { Runner } from '../../../src/core/model.ts'
import { enumerate } from '../../../src/search/classes/systematic.ts'
import type { Statement } from './model-database.ts'
import { modelRunner } from './model-runner.ts'
import { rows } from './scripts.ts'

function alike(flows: number, ...statements: readonly Statement[]): Runner {
  const names = [...Array(flows).keys()].map((flow) => `f${flow}`)
  const flow = function* (): Generator<Statement, number, number> {
    for (const statement of statements) yield statement
    return 0
  }
  return modelRunner(Object.fromEntries(names.map((name) => [name, flow])), { rows })
}

async function counts(runner: Runner): Promise<{ classes: number; schedules: number }> {
  const runs = enumerate(runner, { schedules: 10_000 })
  for (;;) {
    const next = await runs.next()
    if (!next.done) continue
    expect(next.value.exhaustive).toBe(true)
    return { classes: next.value.classes, schedules: next.value.schedules }
  }
}

const begin: Statement = { op: 'begin' }
const commit: Statement = { op: 'commit' }
const count: Statement = { op: 'sum', table: 't' }
const append: Statement = { op: 'append', table: 't', value: 1 }
const lock: Statement = { op: 'lock', row: 'u#k=0' }
const read: Statement = { op: 'read', row: 't#k=0' }
const update: Statement = { op: 'add', row: 't#k=0', by: 1 }

describe('classes, each run once', () => {
  test.each<[string, number, number, readonly Statement[]]>([
    ['check and insert', 2, 3, [begin, count, append, commit]],
    ['check and insert', 3, 19, [begin, count, append, commit]],
    ['check and insert', 4, 207, [begin, count, append, commit]],
    ['check and insert, each on its own', 2, 3, [count, append]],
    ['lock, check and insert', 2, 4, [begin, lock, count, append, commit]],
    ['lock, check and insert', 3, 30, [begin, lock, count, append, commit]],
    ['read and update', 2, 6, [begin, read, update, commit]],
    ['read and update', 3, 96, [begin, read, update, commit]],
    ['lock and update', 2, 6, [begin, { op: 'lock', row: 't#k=0' }, update, commit]],
    ['lock and update', 3, 72, [begin, { op: 'lock', row: 't#k=0' }, update, commit]],
  ])('%s × %i: %i', async (_, flows, classes, statements) => {
    expect(await counts(alike(flows, ...statements))).toEqual({ classes, schedules: classes })
  })
})
