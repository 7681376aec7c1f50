import { fork } from 'node:child_process'
import { once } from 'node:events'
import { rounds } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { sqlStateOf } from '../../../src/core/sql-state.ts'
import { isHoldfastError } from '../../../src/errors.ts'
import type { MoveProgress, Moves, MoveStep } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { afterwards, untilTaken } from '../../support/move-steps.ts'
import type { MoverTask } from '../../support/mover-child.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

/**
 * Movers that stop at any step, followed by others that resume or undo and stop at any step as well, until one comes
 * to the end. `HOLDFAST_MOVES=500 HOLDFAST_SEED=7` for more of them, and others.
 */
const fixture = movesFixture()
const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const
const [count, seed] = [
  Number(process.env['HOLDFAST_MOVES'] ?? rounds(12, 2)),
  Number(process.env['HOLDFAST_SEED'] ?? 1),
]
/** Of these movers, the first ones are processes that are killed; the others leave off in this process. */
const killed = 2

/** What is told of a move from its beginning to its end, in order, and of one that is undone. */
const forward = [...untilTaken, ...afterwards, 'done'] as const
const backward = ['refused', 'unmarked', 'closed', 'undone'] as const satisfies readonly MoveStep[]

/** One mover: what it does, and after which step it is gone. */
interface Run {
  readonly act: 'go on' | 'undo'
  readonly stopAfter: MoveStep
}

interface Sequence {
  readonly number: number
  readonly runs: readonly Run[]
  readonly last: Run['act']
}

/** The same numbers each time (mulberry32). */
function randomFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The first mover stops at each step in turn, so that a few sequences have them all. */
function sequenceOf(number: number): Sequence {
  const random = randomFrom(seed * 10_000 + number)
  const anyOf = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const first = forward[(number * 4) % (forward.length - 1)] as MoveStep
  const later = Array.from({ length: Math.floor(random() * 3) }, (): Run => {
    const act = anyOf(['go on', 'undo'] as const)
    return { act, stopAfter: anyOf(act === 'undo' ? backward : forward) }
  })
  return {
    number,
    runs: [{ act: 'go on', stopAfter: first }, ...later],
    last: anyOf(['go on', 'undo']),
  }
}

class Stopped extends Error {}

/** Gives the id of the move; whether it stopped where it should or came to its end before. */
async function runHere(run: Run, bucket: number, id: string | undefined): Promise<string> {
  let known = id
  const moves = fixture.moves({
    onProgress: (progress) => {
      known = progress.id
      if (progress.step === run.stopAfter) throw new Stopped()
    },
  })
  try {
    await go(moves, run.act, bucket, known)
  } catch (error) {
    if (!(error instanceof Stopped) && !isOver(error) && !hasStumbled(error)) throw error
  }
  return known as string
}

async function runKilled(run: Run, bucket: number, id: string | undefined): Promise<string> {
  const child = fork(new URL('../../support/mover-child.ts', import.meta.url), { stdio: 'ignore' })
  const task: MoverTask = {
    urls: fixture.urls,
    standAt: run.stopAfter,
    buckets: [bucket],
    to: 'south',
    id,
    undo: run.act === 'undo',
  }
  const gone = once(child, 'exit')
  const news = once(child, 'message') as Promise<[Partial<MoveProgress>]>
  child.send(task)
  // One that is overtaken has ended by itself.
  const told = await Promise.race([news, gone.then(() => undefined)])
  child.kill('SIGKILL')
  await gone
  return told?.[0].id ?? (id as string)
}

async function go(moves: Moves, act: Run['act'], bucket: number, id?: string): Promise<void> {
  if (id === undefined) await moves.move({ buckets: [bucket], to: 'south' })
  else if (act === 'undo') await moves.undo(id)
  else await moves.resume(id)
}

/** PostgreSQL stumbles now and then while publications and slots of other moves come and go; then it is done again. */
async function insist<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!hasStumbled(error)) throw error
    }
  }
}

function hasStumbled(error: unknown): boolean {
  return sqlStateOf(error) === 'XX000'
}

/** What was decided is not undone, and what was undone not done. */
function isOver(error: unknown): boolean {
  return isHoldfastError(error, 'SHARD_MOVE_OVERTAKEN')
}

/** At most one primary may serve it at any time. */
async function servedBy(bucket: number): Promise<string[]> {
  const served: string[] = []
  for (const name of ['north', 'south'] as const) {
    const { rowCount } = await fixture.pools[name].query(
      'SELECT FROM holdfast.shard_map WHERE bucket = $1 AND here AND NOT leaving',
      [bucket],
    )
    if (rowCount === 1) served.push(name)
  }
  return served
}

async function play({ number, runs, last }: Sequence): Promise<string[]> {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = fixture.hf.quota(calls)
  let used = 0
  const use = async (): Promise<void> => {
    const operationId = fresh()
    await insist(() => quota.consume(key, 1, { operationId }))
    used += 1
  }
  await use()
  const wrong: string[] = []
  let id: string | undefined
  const runOne = number < killed ? runKilled : runHere
  for (const run of runs) {
    id = await runOne(run, bucket, id)
    const served = await servedBy(bucket)
    if (served.length > 1) wrong.push(`served by ${served.join(' and ')} after ${run.stopAfter}`)
    if (served.length === 1) await use()
  }
  await insist(() => go(fixture.moves(), last, bucket, id)).catch(async (error: unknown) => {
    if (!isOver(error)) throw error
    await insist(() => fixture.moves().resume(id as string))
  })
  const owners = await ownersOf(fixture, bucket)
  const [owner] = owners
  if (owner === undefined || owners.length > 1)
    return [...wrong, `is at ${owners.length} primaries`]
  await use()
  const seen = (await quota.peek(key)).used
  if (seen !== used) wrong.push(`${seen} used, and not ${used}`)
  const other = owner === 'north' ? 'south' : 'north'
  const left = await contentsOf(fixture.pools[other], bucket)
  if (Object.keys(left).length > 0) wrong.push(`rows are left at ${other}`)
  return wrong.map((each) => `${each}: ${JSON.stringify({ number, runs, last })}`)
}

test('however often a move stops, and whoever goes on or undoes it, the bucket is at one primary with all that was done', {
  timeout: 60_000 + count * 10_000,
}, async () => {
  const waiting = Array.from({ length: count }, (_, number) => sequenceOf(number))
  const wrong: string[] = []
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        wrong.push(...(await play(next)))
      } catch (error) {
        wrong.push(`${String(error)}: ${JSON.stringify(next)}`)
      }
    }
  }
  await Promise.all([lane(), lane(), lane()])
  expect(wrong).toEqual([])
  expect(await leftovers(fixture)).toEqual([])
})
