import { createHoldfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type { Pool } from 'pg'
import { reconcile } from './reconcile.ts'
import { settings } from './settings.ts'

/** Every process starts the same schedule. Each night is done once, by one of them. */
export function startScheduled(pool: Pool): { stop(): Promise<unknown> } {
  const hf = createHoldfast(fromPg(pool))
  const nightly = hf.schedule({
    name: 'reconciliation',
    // For real: cron: '0 3 * * *', timeZone: 'America/Santiago'
    every: settings.nightMs,
    // The charges and "this night is done" commit together.
    guarantee: 'transactional',
    // Every night counts: one that comes while another is at work has its turn afterwards, and those
    // of a week without any process are made up for.
    overlap: 'wait',
    missed: { all: 7 },
    handler: async (tx, { at }) => await reconcile(tx, at),
  })
  return nightly.start()
}
