import { expect, test } from 'vitest'
import { createTransactions } from '../../../../src/tx/index.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

const tables = [
  'CREATE TABLE log (id INTEGER PRIMARY KEY)',
  'CREATE TABLE strict_log (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)',
]

type Call = (...args: unknown[]) => unknown

/** What a connection has besides statements. */
interface Native extends Handle {
  function(name: string, call: Call): unknown
  createSession?(): { changeset(): Uint8Array }
  applyChangeset?(changes: Uint8Array, options?: object): unknown
}

/** What a client does without a text is held back as well, once SQLite has rolled back. */
eachSqlite(tables, (place) => {
  const count = (table: string): unknown => value(place.open(), `SELECT COUNT(*) FROM ${table}`)

  /** Names of all methods of the client's connection. */
  const methods = (): readonly string[] => {
    const { constructor } = place.open() as unknown as {
      readonly constructor: { prototype: object }
    }
    const descriptors = Object.getOwnPropertyDescriptors(constructor.prototype)
    return Object.entries(descriptors).flatMap(([name, { value: method }]) =>
      typeof method === 'function' && name !== 'constructor' ? [name] : [],
    )
  }

  /** Changes that insert these rows. */
  const changes = (table: string, ids: readonly number[]): Uint8Array | undefined => {
    const db = place.open() as Native
    if (db.createSession === undefined) return undefined
    db.exec('BEGIN')
    const session = db.createSession()
    for (const id of ids) db.exec(`INSERT INTO ${table} VALUES (${id})`)
    const made = session.changeset()
    db.exec('ROLLBACK')
    return made
  }

  test('nothing of the client runs once SQLite has rolled back', async () => {
    const called = methods()
    expect(called).toContain('function')
    const told = createTransactions(place.driver()).run(async (tx) => {
      tx.exec('INSERT INTO log VALUES (1)')
      expect(() => tx.exec('INSERT OR ROLLBACK INTO log VALUES (1)')).toThrow(/UNIQUE/)
      const ran = called.filter((name) => {
        try {
          ;(tx as unknown as Readonly<Record<string, Call>>)[name]?.('SELECT 1')
          return true
        } catch (error) {
          const { code } = error as { readonly code?: string }
          return !['TX_ROLLED_BACK', 'TX_ENDED_INSIDE', 'ENGINE_NOT_OFFERED'].includes(code ?? '')
        }
      })
      // It gives a function, which runs nothing.
      expect(ran.filter((name) => name !== 'transaction')).toEqual([])
    })
    await expect(told).rejects.toMatchObject({ code: expect.stringMatching(/^TX_/) })
    expect(count('log')).toBe(0)
  })

  test('changes that are applied after it are not saved', async () => {
    const [made, more] = [changes('log', [7]), changes('log', [8])]
    if (made === undefined) return
    const run = createTransactions(place.driver()).run(async (tx) => {
      tx.exec('INSERT INTO log VALUES (1)')
      expect(() => tx.exec('INSERT OR ROLLBACK INTO log VALUES (1)')).toThrow(/UNIQUE/)
      expect(() => (tx as Native).applyChangeset?.(made)).toThrow(/TX_ROLLED_BACK/)
    })
    await expect(run).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(count('log')).toBe(0)
    // Control: on a connection of one's own they are.
    const own = place.open() as Native
    own.exec('BEGIN; INSERT INTO log VALUES (1)')
    expect(() => own.exec('INSERT OR ROLLBACK INTO log VALUES (1)')).toThrow(/UNIQUE/)
    own.applyChangeset?.(made)
    expect(count('log')).toBe(1)
    // And as long as the transaction is there, they are a part of it.
    await createTransactions(place.driver()).run(async (tx) => {
      ;(tx as Native).applyChangeset?.(more as Uint8Array)
    })
    expect(count('log')).toBe(2)
  })

  test('changes of which one rolls back: nobody knows what is saved of the rest', async () => {
    const made = changes('strict_log', [1, 2, 3])
    if (made === undefined) return
    place.open().exec('INSERT INTO strict_log VALUES (1)')
    const run = createTransactions(place.driver()).run(async (tx) => {
      try {
        ;(tx as Native).applyChangeset?.(made, { onConflict: () => 0 })
      } catch {
        // A body that hears nothing.
      }
    })
    await expect(run).rejects.toMatchObject({
      code: 'TX_ENDED_INSIDE',
      details: { ended: 'unknown' },
    })
    expect(count('strict_log')).toBe(3)
  })

  // A function of better-sqlite3 can send nothing.
  const inFunctions = place.client === 'node:sqlite'
  test.skipIf(!inFunctions)(
    'a function that rolls back beneath a text: nobody knows what is saved of the rest',
    async () => {
      const bodies: readonly ((tx: Native) => void)[] = [
        (tx) => tx.exec('SELECT rolls_back(); INSERT INTO log VALUES (5)'),
        (tx) =>
          tx.exec('SELECT rolls_back(); INSERT INTO log VALUES (6); INSERT INTO log VALUES (6)'),
      ]
      for (const body of bodies) {
        const run = createTransactions(place.driver()).run(async (handle) => {
          const tx = handle as Native
          tx.exec('INSERT INTO log VALUES (1)')
          tx.function('rolls_back', () => {
            try {
              tx.exec('INSERT OR ROLLBACK INTO log VALUES (1)')
            } catch {
              // So that what stands behind it is run.
            }
            return 1
          })
          try {
            body(tx)
          } catch {
            // A body that hears nothing.
          }
        })
        await expect(run).rejects.toMatchObject({
          code: 'TX_ENDED_INSIDE',
          details: { ended: 'unknown' },
        })
      }
      expect(count('log')).toBeGreaterThan(0)
    },
  )
})
