import { describe, expect, test } from 'vitest'
import type { Flow } from '../../../src/run/options.ts'
import { patienceMs } from './expectations.ts'
import { holdfastOn, ownDriver, type Room, roomStage } from './room-stage.ts'
import { withoutUniqueKeys } from './weakened.ts'

const room: Room = {
  tables: 'CREATE TABLE payment (id serial PRIMARY KEY, amount int NOT NULL)',
  rows: 'TRUNCATE payment RESTART IDENTITY; DELETE FROM holdfast.once',
  compared: {
    tables: ['payment', 'holdfast.once'],
    ignore: ['once.done_at', 'once.expires_at'],
  },
}

/** A webhook that comes more than once. All get the same answer. */
const receiving: Flow = (cx) => {
  const hf = holdfastOn(ownDriver(cx))
  return hf.transaction(async (tx) => {
    const outcome = await hf.once(tx, 'evt_1', async () => {
      const { rows } = await tx.query('INSERT INTO payment (amount) VALUES (100) RETURNING id')
      return rows[0]
    })
    return outcome.result
  })
}

describe('once and once', () => {
  const explored = roomStage(room)

  test(
    'two',
    async () => {
      expect(await explored({ a: receiving, b: receiving })).toBeExhausted({
        classes: 4,
        schedules: 8,
      })
    },
    patienceMs,
  )

  test(
    'three',
    async () => {
      const flows = { a: receiving, b: receiving, c: receiving }
      const report = await explored(flows, { symmetric: true })
      expect(report).toBeExhausted({ classes: 6, schedules: 9 })
    },
    patienceMs,
  )

  describe('control', () => {
    const weakened = roomStage(room, withoutUniqueKeys)

    test(
      'look, work and remember: paid twice',
      async () => {
        expect(await weakened({ a: receiving, b: receiving })).toBeCaught()
      },
      patienceMs,
    )
  })
})
