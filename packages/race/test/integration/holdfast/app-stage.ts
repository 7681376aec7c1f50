import { withClient } from '@holdfast/testkit'
import { beforeAll } from 'vitest'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast, type HoldfastOptions } from '../../../../holdfast/src/index.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { budget } from './expectations.ts'
import type { OwnHoldfast } from './ledger-stage.ts'

/** Explores flows on tables of an application's own. */
export type AppStage = (
  flows: Readonly<Record<string, Flow>>,
  options?: Partial<ExploreOptions>,
) => Promise<Report>

/** A database of its own, with these tables, filled anew before every schedule. */
export function appStage(tables: string, rows: string): AppStage {
  let url = ''
  beforeAll(async () => {
    url = (await testDatabase()).directUrl
    await withClient(url, (client) => client.query(tables))
  })
  return (flows, options) =>
    explore({
      url,
      flows,
      seed: ({ query }) => query(rows),
      budget,
      onProgress: () => undefined,
      ...options,
    })
}

/**
 * Made anew in every run, as a process would. Not strict, so that controls may take locks in any
 * order; nothing that depends on the clock: a short wait, or the watch over what is held for long.
 */
export function ownHoldfast({ pool }: FlowContext): OwnHoldfast {
  const options: HoldfastOptions = { locks: { strict: false, watch: false, waitMs: 60_000 } }
  return createHoldfast(fromPg(pool), options)
}
