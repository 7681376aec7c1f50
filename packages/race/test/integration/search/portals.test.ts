/** However a driver sends a statement, by portals and pieces of them, it is the same statement in the same transaction. */
import { sample, withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

interface Wire {
  parse(message: object): void
  bind(message: object): void
  describe(message: object): void
  execute(message: object): void
  close(message: object): void
  flush(): void
  sync(): void
}

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(
      'CREATE TABLE acc (id int PRIMARY KEY, n int); CREATE TABLE flag (f int); CREATE TABLE big (i int);' +
        'INSERT INTO big SELECT generate_series(1, 3)',
    ),
  )
})

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({
    url,
    flows,
    onProgress: () => undefined,
    seed: async ({ query }) => {
      await query('TRUNCATE acc, flag')
      await query('INSERT INTO acc VALUES (1, 0), (2, 0)')
      await query('INSERT INTO flag VALUES (0)')
    },
  })

type Piece = (wire: Wire) => void

/** Sends each piece when the one before was answered. A piece ends with Flush, or with Sync. */
function sends(client: PoolClient, pieces: readonly Piece[]): Promise<unknown[]> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown[]>()
  const rows: unknown[] = []
  let wire: Wire | undefined
  let place = 0
  const next = (): void => {
    const piece = pieces[place]
    place += 1
    if (wire && piece) piece(wire)
  }
  client.query({
    submit(given: Wire) {
      wire = given
      next()
    },
    handleDataRow: ({ fields }: { fields: unknown[] }) => rows.push(...fields),
    handleRowDescription: () => undefined,
    handleCommandComplete: next,
    handlePortalSuspended: next,
    handleEmptyQuery: () => undefined,
    handleError: reject,
    handleReadyForQuery: () => resolve(rows.map(String)),
  } as never)
  return promise
}

const parse = (text: string, name = '') => ({ name, text, types: [] })
const bind = (portal = '', statement = '') => ({ portal, statement, values: [] })
const all =
  (...steps: readonly Piece[]): Piece =>
  (wire) => {
    for (const step of steps) step(wire)
  }
const P =
  (text: string, name?: string): Piece =>
  (wire) =>
    wire.parse(parse(text, name))
const B =
  (portal?: string, name?: string): Piece =>
  (wire) =>
    wire.bind(bind(portal, name))
const E =
  (portal = '', rows = 0): Piece =>
  (wire) =>
    wire.execute({ portal, rows })
const C =
  (portal: string): Piece =>
  (wire) =>
    wire.close({ type: 'P', name: portal })
const S: Piece = (wire) => wire.sync()
const H: Piece = (wire) => wire.flush()

/** How a statement may be sent that gives three rows, or one. */
const ways: Readonly<Record<string, (client: PoolClient, text: string) => Promise<unknown>>> = {
  'in a piece of its own': (client, text) => sends(client, [all(P(text), B(), E(), S)]),
  'row by row': (client, text) =>
    sends(client, [
      all(P(text), B(), E('', 1), H),
      ...Array.from({ length: /big/.test(text) ? 3 : 1 }, () => all(E('', 1), H)),
      S,
    ]),
  'row by row, each with a Sync': async (client, text) => {
    await sends(client, [all(P(text), B('p'), E('p', 1), S)])
    await sends(client, [all(E('p', 1), S)])
    await sends(client, [all(C('p'), S)])
  },
  'executed later': async (client, text) => {
    await sends(client, [all(P(text), B('p'), S)])
    await sends(client, [all(E('p'), S)])
  },
  'prepared first, by name': async (client, text) => {
    const name = `s${process.hrtime.bigint()}`
    await sends(client, [all(P(text, name), S)])
    await sends(client, [all(B('', name), E(), S)])
  },
  'prepared by SQL, bound by the protocol': async (client, text) => {
    const name = `q${process.hrtime.bigint()}`
    await client.query(`PREPARE ${name} AS ${text}`)
    await sends(client, [all(B('', name), E(), S)])
  },
  'beside a query that says nothing': async (client, text) => {
    await client.query(text)
    await client.query('')
    await client.query('-- still there')
    await sends(client, [S])
  },
}

// In a brief run those that differ most: at once, in pieces with a Sync between them, by name, with nothing between.
describe.each(sample(Object.entries(ways), 2))('a statement %s', (_, ask) => {
  const transaction =
    (body: (client: PoolClient) => Promise<unknown>): Flow =>
    async ({ pool }) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await body(client)
        await pool.query('UPDATE flag SET f = 1')
        await client.query('COMMIT')
      } finally {
        client.release()
      }
    }
  // What was told before the COMMIT is read by others before it.
  const reader: Flow = async ({ pool }) => {
    if ((await pool.query<{ f: number }>('SELECT f FROM flag')).rows[0]?.f === 0) return 'not yet'
    return (await pool.query<{ n: number }>('SELECT n FROM acc WHERE id = 1')).rows[0]?.n
  }

  test('ends no transaction', async () => {
    const writer = transaction(async (client) => {
      await client.query('UPDATE acc SET n = 1 WHERE id = 1')
      await ask(client, 'SELECT i FROM big')
    })
    expect((await look({ writer, reader })).verdict).toBe('race')
  })

  test('is seen to write', async () => {
    const writer = transaction((client) =>
      ask(client, 'UPDATE acc SET n = 1 WHERE id = 1 RETURNING n'),
    )
    expect((await look({ writer, reader })).verdict).toBe('race')
  })
})

test('what is executed and flushed is committed by its Sync, and not before', async () => {
  const writer: Flow = async ({ pool }) => {
    const client = await pool.connect()
    const [executed, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    try {
      let wire: Wire | undefined
      client.query({
        submit(given: Wire) {
          wire = given
          all(P('UPDATE acc SET n = 1 WHERE id = 1'), B(), E(), H)(given)
        },
        handleCommandComplete: executed.resolve,
        handleReadyForQuery: ended.resolve,
        handleError: executed.reject,
      } as never)
      await executed.promise
      await pool.query('UPDATE flag SET f = 1')
      wire?.sync()
      await ended.promise
    } finally {
      client.release()
    }
  }
  const reader: Flow = async ({ pool }) => {
    if ((await pool.query<{ f: number }>('SELECT f FROM flag')).rows[0]?.f === 0) return 'not yet'
    return (await pool.query<{ n: number }>('SELECT n FROM acc WHERE id = 1')).rows[0]?.n
  }
  expect((await look({ writer, reader })).verdict).toBe('race')
})

describe('each Execute has a snapshot of its own', () => {
  const sum = 'SELECT sum(n) FROM acc'
  const batches: Readonly<Record<string, readonly Piece[]>> = {
    'one Parse': [all(P(sum), B(), E(), B(), E(), S)],
    'portals of one Parse': [all(P(sum), B('a'), B('b'), E('a'), E('b'), S)],
    'described first': [all(P(sum), (wire) => wire.describe({ type: 'S' }), B(), E(), B(), E(), S)],
    'by name': [all(P(sum, 'sum'), B('', 'sum'), E(), B('', 'sum'), E(), S)],
    'the same text parsed again': [all(P(sum), B(), E(), P(sum), B(), E(), S)],
  }
  const writer: Flow = ({ pool }) => pool.query('UPDATE acc SET n = 1 WHERE id = 1')
  const reads =
    (pieces: readonly Piece[]): Flow =>
    async ({ pool }) => {
      const client = await pool.connect()
      try {
        return await sends(client, pieces)
      } finally {
        client.release(true)
      }
    }

  test.each(sample(Object.entries(batches)))('%s', async (_, pieces) => {
    const report = await look({ reader: reads(pieces), writer })
    expect([report.verdict, report.coverage.exhaustive]).toEqual(['bounded', false])
    expect(report.notes.map(({ kind }) => kind)).toContain('several-statements')
  })

  test('a single one is proven', async () => {
    const flows = { reader: reads([all(P(sum), B(), B(), E(), S)]), writer }
    const report = await look(flows)
    expect([report.verdict, report.coverage.exhaustive]).toEqual(['race-free', true])
  })
})
