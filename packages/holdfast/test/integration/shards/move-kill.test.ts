import { fork } from 'node:child_process'
import { once } from 'node:events'
import { sample } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import type { MoveProgress, MoveStep } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { afterwards, untilTaken } from '../../support/move-steps.ts'
import type { MoverTask } from '../../support/mover-child.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture()
const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const

/** A process that is killed with SIGKILL when it has done this step; gives the id of its move. */
async function killedAfter(
  standAt: MoveStep,
  buckets: readonly number[],
  id?: string,
): Promise<string> {
  const child = fork(new URL('../../support/mover-child.ts', import.meta.url))
  const task: MoverTask = { urls: fixture.urls, standAt, buckets, to: 'south', id }
  child.send(task)
  const [told] = (await once(child, 'message')) as [MoveProgress]
  expect(told.step).toBe(standAt)
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
  return told.id
}

/** Each step is a process of its own, which takes a while to start. */
const manyProcesses = { timeout: 120_000 }

test('a mover that is killed after every step is followed by another', manyProcesses, async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = fixture.hf.quota(calls)
  let [id, used]: [string | undefined, number] = [undefined, 0]
  for (const step of [...untilTaken, ...afterwards]) {
    const leaving = ['marked', 'quiet', 'ended', 'arrived', 'counted', 'taken'].includes(step)
    id = await killedAfter(step, [bucket], id)
    // While nobody has it, an operation would wait; before and after it is done.
    const owners = await ownersOf(fixture, bucket)
    if (step === 'taken') expect(owners).toEqual(['north', 'south'])
    else expect(owners).toHaveLength(1)
    if (leaving) continue
    expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
    used += 1
  }
  expect(await fixture.moves().resume(id as string)).toMatchObject({ moved: true })
  expect(await ownersOf(fixture, bucket)).toEqual(['south'])
  expect(await quota.peek(key)).toMatchObject({ used })
  expect(await contentsOf(fixture.pools.north, bucket)).toEqual({})
  expect(await leftovers(fixture)).toEqual([])
  // Once more changes nothing, and it cannot be undone any more.
  expect(await fixture.moves().resume(id as string)).toMatchObject({ moved: true })
  await expect(fixture.moves().undo(id as string)).rejects.toMatchObject({
    code: 'SHARD_MOVE_OVERTAKEN',
  })
})

/** Fewer than all: going on from each of them is tested above, and going back is the same from many. */
const undone = ['opened', 'published', 'subscribed', 'copied', 'marked', 'arrived'] as const

test.each(sample(undone, 2))('a mover that is killed when it has %s is undone', async (step) => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = fixture.hf.quota(calls)
  await quota.consume(key, 3, { operationId: fresh() })
  const before = await contentsOf(fixture.pools.north, bucket)
  const id = await killedAfter(step, [bucket])
  await fixture.moves().undo(id)
  expect(await ownersOf(fixture, bucket)).toEqual(['north'])
  expect(await contentsOf(fixture.pools.north, bucket)).toEqual(before)
  expect(await contentsOf(fixture.pools.south, bucket)).toEqual({})
  expect(await leftovers(fixture)).toEqual([])
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  // Undone is undone, whoever comes late; a new move is another one.
  expect(await fixture.moves().resume(id)).toMatchObject({ moved: false })
})
