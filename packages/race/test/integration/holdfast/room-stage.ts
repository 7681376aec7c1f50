import { replaceThere, withClient } from '@holdfast/testkit'
import { beforeAll } from 'vitest'
import type { Driver } from '../../../../holdfast/src/core/driver.ts'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../../holdfast/src/index.ts'
import { migrateFiles } from '../../../../holdfast/src/schema/migrate.ts'
import { ownFiles } from '../../../../holdfast/src/schema/schema-files.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import type { FlowContext } from '../../../src/run/options.ts'
import type { AppStage } from './app-stage.ts'
import { budget } from './expectations.ts'
import type { OwnHoldfast, Tx, Weakened } from './ledger-stage.ts'

/** What is on the stage of one room. */
export interface Room {
  /** Tables of an application, and what else is done once. */
  readonly tables: string
  /** Brings everything back to where it was, before every schedule. */
  readonly rows: string
  /** What is compared, and what of it is chance or time. */
  readonly compared: { readonly tables: readonly string[]; readonly ignore?: readonly string[] }
}

/** A database of its own with our schema, as it is or weakened. */
export function roomStage({ tables, rows, compared }: Room, weakened?: () => Weakened): AppStage {
  let url = ''
  beforeAll(async () => {
    url = (await testDatabase()).directUrl
    const { files, later = '' } = weakened?.() ?? { files: ownFiles() }
    await withClient(url, async (client) => {
      const pool = { connect: async () => Object.assign(client, { release: () => undefined }) }
      await migrateFiles(fromPg(pool as never), files)
      await client.query(`${later}; ${tables}`)
    })
  })
  return (flows, options) =>
    explore({
      url,
      flows,
      seed: ({ query }) => query(rows),
      oracle: compared,
      budget,
      // One step each: see ledger-stage.ts.
      functions: 'atomic',
      onProgress: () => undefined,
      ...options,
    })
}

/** Our driver over the flow's connections; nothing is prepared, which takes a look of its own. */
export function ownDriver({ pool }: FlowContext): Driver<Tx> {
  return fromPg(pool, { prepare: 'never' })
}

/** The same with statements of which a piece is missing. Fails if that piece is never there. */
export function driverWithout(context: FlowContext, piece: RegExp, instead: string): Driver<Tx> {
  const driver = ownDriver(context)
  return {
    ...driver,
    alone: {
      async query(statement) {
        // What columns are compared by is asked for first, and is no part of it.
        if (statement.name === 'own_operators') return await driver.alone.query(statement)
        const text = replaceThere('the statement', statement.text, piece, instead)
        return await driver.alone.query({ ...statement, text })
      },
    },
  }
}

export function holdfastOn(driver: Driver<Tx>): OwnHoldfast {
  return createHoldfast(driver)
}
