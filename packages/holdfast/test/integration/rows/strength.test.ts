/** Which strengths exclude which: PostgreSQL's own table, seen through `rows.lock`. */
import { waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { RowStrength } from '../../../src/entries/rows.ts'
import { openRoom, type Room } from './open-room.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE parent (id int PRIMARY KEY, name text)`)
  await room.sql(`CREATE TABLE child (id int PRIMARY KEY, parent_id int REFERENCES parent)`)
  await room.sql(`INSERT INTO parent SELECT i, 'p' || i FROM generate_series(1, 10) AS i`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const excludes: Record<RowStrength, RowStrength[]> = {
  'key share': ['update'],
  share: ['no key update', 'update'],
  'no key update': ['share', 'no key update', 'update'],
  update: ['key share', 'share', 'no key update', 'update'],
}
const strengths = Object.keys(excludes) as RowStrength[]

describe.each(strengths)('while a row is locked for %s', (held) => {
  test.each(strengths)('another may or may not lock it for %s', async (asked) => {
    const holder = await room.begin()
    await room.rows.lock(holder.client, 'parent', [1], { strength: held })
    const other = await room.begin()
    const options = { strength: asked, wait: 'nowait' } as const
    const locking = room.rows.lock(other.client, 'parent', [1], options)
    if (excludes[held].includes(asked)) {
      await expect(locking).rejects.toMatchObject({ code: 'ROWS_BUSY' })
    } else {
      expect((await locking).rows).toHaveLength(1)
    }
  })
})

test('the default lets others refer to the row, and keeps them from changing it', async () => {
  const holder = await room.begin()
  await room.rows.lock(holder.client, 'parent', [1])
  const other = await room.begin()
  await other.sql('INSERT INTO child VALUES (1, 1)')
  const updating = other.sql(`UPDATE parent SET name = 'x' WHERE id = 1`)
  expect(await waitUntilBlocked(room.observer, other.pid)).toEqual([holder.pid])
  await holder.rollback()
  await updating
})

test('control: update keeps others from referring to the row', async () => {
  const holder = await room.begin()
  await room.rows.lock(holder.client, 'parent', [1], { strength: 'update' })
  const other = await room.begin()
  const inserting = other.sql('INSERT INTO child VALUES (2, 1)')
  expect(await waitUntilBlocked(room.observer, other.pid)).toEqual([holder.pid])
  await holder.rollback()
  await inserting
})
