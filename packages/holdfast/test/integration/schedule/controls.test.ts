import { readFileSync } from 'node:fs'
import { deferred } from '@holdfast/testkit'
import { afterEach, expect, test } from 'vitest'
import type { Schedule } from '../../../src/entries/schedule.ts'
import { bindSchema } from '../../../src/engines/postgres/schema/script.ts'
import {
  effects,
  expireLeases,
  freshName,
  scheduleFixture,
  sleepThrough,
  weekly,
} from './schedule-room.ts'

/** What the other files promise, with one protection cut out of our own SQL: it must break. */
const fixture = scheduleFixture()

async function install(name: string, cut?: [from: string, to: string]): Promise<void> {
  const text = readFileSync(new URL(`../../../sql/app/${name}.sql`, import.meta.url), 'utf8')
  if (cut !== undefined && !text.includes(cut[0])) throw new Error(`${name} has no "${cut[0]}"`)
  const changed = cut === undefined ? text : text.replace(...cut)
  await fixture.observer.query(bindSchema(changed, 'holdfast'))
}

afterEach(async () => {
  for (const name of ['claim_tick', 'finish_tick']) await install(name)
})

function declare(name: string, before?: () => Promise<void>): Schedule {
  return fixture.hf.schedule({
    name,
    ...weekly,
    guarantee: 'at-least-once',
    handler: async ({ at }) => {
      await before?.()
      await fixture.pool.query('INSERT INTO effect VALUES ($1, $2)', [at, name])
    },
  })
}

test('without the instant that only goes up, a tick whose row is forgotten runs again', async () => {
  await install('claim_tick', ['SET last_tick = at', 'SET last_tick = x.last_tick'])
  const name = freshName()
  const at = new Date('2026-01-01T00:00:00Z')
  for (let round = 0; round < 2; round += 1) {
    expect(await declare(name).fireAt(at)).toMatchObject({ outcome: 'done' })
    await fixture.observer.query('DELETE FROM holdfast.tick WHERE schedule = $1', [name])
  }
  expect(await effects(fixture.observer, name)).toEqual([2])
})

test('without the token, one that was given up says that it is done while another is at work', async () => {
  await install('finish_tick', ['AND x.token = token AND', 'AND'])
  const name = freshName()
  await sleepThrough(fixture.observer, name, 1)
  const [begun, go] = [deferred<void>(), deferred<void>()]
  const stalled = declare(name, async () => {
    begun.resolve()
    await go.promise
  }).fire()
  await begun.promise
  await expireLeases(fixture.observer, name)
  const [otherBegun, otherGo] = [deferred<void>(), deferred<void>()]
  const other = declare(name, async () => {
    otherBegun.resolve()
    await otherGo.promise
  }).fire()
  await otherBegun.promise
  go.resolve()
  // Done, by its word, although the one that has the tick is still at work.
  expect(await stalled).toMatchObject([{ outcome: 'done', attempt: 1 }])
  otherGo.resolve()
  await other
})

test("without the database's clock, a tick is taken before its time", async () => {
  await install('claim_tick', ['IF at > moment THEN', 'IF false THEN'])
  const at = new Date(Date.now() + 86_400_000)
  const schedule = fixture.hf.schedule({
    name: freshName(),
    guarantee: 'at-most-once',
    handler: () => undefined,
  })
  expect(await schedule.fireAt(at)).toMatchObject({ outcome: 'done', at })
})
