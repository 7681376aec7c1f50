import { beforeAll } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { sleepThrough } from '../../integration/schedule/schedule-room.ts'
import { tables } from '../../promises/bench.ts'
import { keepsPromises } from '../../promises/keeps-promises.ts'
import type { Setting } from './setting.ts'

/** What all engines promise, each in its own way. */
export function promises<Tx>(at: Setting<Tx>, client: string): void {
  beforeAll(async () => {
    for (const text of tables('TIMESTAMPTZ')) await at.observer.query(text)
    await migrate(at.harness.driver)
  })
  keepsPromises<Tx>('postgres', client, () => ({
    start: async () => createHoldfast((await at.another()).driver),
    run: async (tx, text) => await at.harness.run(tx, text),
    own: async (body) => await at.harness.own(body),
    look: async (text) => (await at.observer.query<Record<string, unknown>>(text)).rows,
    sleepThrough: async (name) => await sleepThrough(at.observer, name, 1),
  }))
}
