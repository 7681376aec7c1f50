import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe } from 'vitest'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'
import {
  type ClientName,
  driverBy,
  type Handle,
  installedClients,
  openHandle,
} from './sqlite-clients.ts'

/** A fresh file in WAL for each test, and a client for it. */
export interface SqlitePlace {
  readonly client: ClientName
  /** Only inside tests and hooks. */
  file(): string
  /** A connection that looks on; closed after the test. */
  open(): Handle
  /** A driver; closed after the test. */
  driver(open?: () => Handle): SqliteDriver<Handle>
  /** Closes something else after the test. */
  closing(each: { close(): unknown }): void
}

/** Registers the same tests for each client. `tables` are made in every file. */
export function eachSqlite(tables: readonly string[], body: (place: SqlitePlace) => void): void {
  for (const client of installedClients()) {
    describe(`with ${client}`, () => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
      let number = 0
      let open: { close(): unknown }[] = []
      const file = (): string => join(folder, `${number}.db`)
      const place: SqlitePlace = {
        client,
        file,
        open() {
          const handle = openHandle(client, file())
          open.push(handle)
          return handle
        },
        driver(by = () => openHandle(client, file())) {
          const driver = driverBy(client, by)
          open.push(driver)
          return driver
        },
        closing: (each) => void open.push(each),
      }
      beforeEach(() => {
        number += 1
        const handle = openHandle(client, file())
        handle.exec('PRAGMA journal_mode = WAL')
        for (const table of tables) handle.exec(table)
        handle.close()
        return () => {
          for (const each of open) close(each)
          open = []
        }
      })
      afterAll(() => rmSync(folder, { recursive: true }))
      body(place)
    })
  }
}

function close(each: { close(): unknown }): void {
  try {
    each.close()
  } catch {
    // A test has closed it.
  }
}
