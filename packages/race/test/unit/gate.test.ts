import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createGatedConnection, type GatedConnection } from '../../src/gate/gated-connection.ts'
import type { Settlement } from '../../src/gate/unit.ts'
import { writeError } from '../../src/wire/backend.ts'
import { createFrameReader } from '../../src/wire/frame-reader.ts'
import {
  flushMessage,
  syncMessage,
  terminateMessage,
  writeExtended,
  writeParse,
  writeQuery,
} from '../../src/wire/frontend.ts'
import { int16, int32, writeFrame, zeroTerminated } from '../../src/wire/write-frame.ts'

/** What a server says. */
const says = {
  key: writeFrame('K', int32(4711), int32(1)),
  ready: (state: string) => writeFrame('Z', Buffer.from(state)),
  complete: (tag: string) => writeFrame('C', zeroTerminated(tag)),
  parsed: writeFrame('1'),
  bound: writeFrame('2'),
  noData: writeFrame('n'),
  parameters: writeFrame('t', int16(0)),
  row: (text: string) => writeFrame('D', int16(1), int32(text.length), Buffer.from(text)),
  column: (name: string) =>
    writeFrame(
      'T',
      int16(1),
      zeroTerminated(name),
      int32(0),
      int16(0),
      int32(25),
      int16(-1),
      int32(-1),
      int16(0),
    ),
  error: (code: string) =>
    writeError(
      new Map([
        ['S', 'ERROR'],
        ['C', code],
        ['M', 'no'],
      ]),
    ),
}

interface Bench {
  readonly connection: GatedConnection
  /** Types of the messages that went to the server since the last look. */
  sent(): string
  /** Types of the messages that the client got since the last look. */
  got(): string
  readonly settled: Settlement[]
  readonly parked: string[]
}

function open(): Bench {
  let toServer: Buffer[] = []
  let toClient: Buffer[] = []
  const settled: Settlement[] = []
  const parked: string[] = []
  const types = (chunks: Buffer[]): string =>
    createFrameReader()
      .push(Buffer.concat(chunks))
      .map((frame) => frame.type)
      .join('')
  const connection = createGatedConnection(
    {
      toServer: (bytes) => toServer.push(bytes),
      toClient: (bytes) => toClient.push(bytes),
      endServer: () => connection.serverGone(),
      endClient: () => toClient.push(writeFrame('!')),
      reopen: () => Promise.resolve(4712),
    },
    {
      parked: () => parked.push(connection.unit?.statements.join(';') ?? ''),
      settled: (_, settlement) => settled.push(settlement),
      closed: () => {},
    },
  )
  connection.fromServer(Buffer.concat([says.key, says.ready('I')]))
  toClient = []
  return {
    connection,
    settled,
    parked,
    sent() {
      const all = types(toServer)
      toServer = []
      return all
    },
    got() {
      const all = types(toClient)
      toClient = []
      return all
    },
  }
}

const whole = { split: false, deliver: true }
const split = { split: true, deliver: true }
const extended = (text: string): Buffer => Buffer.concat([writeExtended(text), syncMessage])

describe('a unit', () => {
  test('waits until it is let pass, and so does its answer', () => {
    const { connection, sent, got, parked, settled } = open()
    expect(connection.pid).toBe(4711)
    connection.fromClient(writeQuery('SELECT 1'))
    expect([parked, sent(), connection.phase]).toEqual([['SELECT 1'], '', 'parked'])
    connection.pass(whole)
    expect(sent()).toBe('Q')
    connection.fromServer(Buffer.concat([says.column('n'), says.row('1')]))
    expect(got()).toBe('')
    connection.fromServer(Buffer.concat([says.complete('SELECT 1'), says.ready('T')]))
    expect(got()).toBe('TDCZ')
    expect(settled).toMatchObject([
      {
        before: 'I',
        after: 'T',
        held: false,
        answer: { columns: ['n'], rows: [['1']], rowCount: 1 },
      },
    ])
  })

  test('that was sent ahead waits for the one before it', () => {
    const { connection, sent, parked } = open()
    connection.fromClient(Buffer.concat([writeQuery('BEGIN'), extended('SELECT 1')]))
    expect(parked).toEqual(['BEGIN'])
    connection.pass(whole)
    expect(sent()).toBe('Q')
    connection.fromServer(Buffer.concat([says.complete('BEGIN'), says.ready('T')]))
    expect([parked, sent()]).toEqual([['BEGIN', 'SELECT 1'], ''])
    connection.pass(split)
    // In a transaction there is nothing to hold back.
    expect(sent()).toBe('PBDES')
  })

  test('is the same however its bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 200 }), { maxLength: 12 }), (cuts) => {
        const { connection, sent, parked } = open()
        const bytes = extended('UPDATE t SET a = 1')
        const places = [0, ...cuts.map((cut) => cut % bytes.length), bytes.length].sort(
          (one, other) => one - other,
        )
        places.slice(1).forEach((end, index) => {
          expect(parked).toEqual([])
          connection.fromClient(Buffer.from(bytes.subarray(places[index], end)))
        })
        expect(parked).toEqual(['UPDATE t SET a = 1'])
        connection.pass(split)
        expect(sent()).toBe('PBDEH')
      }),
    )
  })

  test('whose client asks for types first is one unit', () => {
    const { connection, sent, got, parked, settled } = open()
    const describe = writeFrame('D', Buffer.from('S'), zeroTerminated('s1'))
    connection.fromClient(
      Buffer.concat([writeParse('s1', 'SELECT $1', []), describe, flushMessage]),
    )
    connection.pass(split)
    expect(sent()).toBe('PDH')
    connection.fromServer(Buffer.concat([says.parsed, says.parameters, says.column('n')]))
    expect([got(), connection.phase]).toEqual(['1tT', 'passing'])
    const bind = writeFrame(
      'B',
      zeroTerminated(''),
      zeroTerminated('s1'),
      int16(0),
      int16(1),
      int32(1),
      Buffer.from('7'),
      int16(0),
    )
    const execute = writeFrame('E', zeroTerminated(''), int32(0))
    connection.fromClient(Buffer.concat([bind, execute, syncMessage]))
    expect([parked, sent()]).toEqual([['SELECT $1'], 'BEH'])
    connection.fromServer(Buffer.concat([says.bound, says.row('7'), says.complete('SELECT 1')]))
    expect(settled).toMatchObject([
      { held: true, unit: { parameters: ['7'] }, answer: { columns: ['n'], rows: [['7']] } },
    ])
    connection.commit(true)
    connection.fromServer(says.ready('I'))
    expect(got()).toBe('2DCZ')
  })
})

describe('holding the commit back', () => {
  test('of an extended query: Flush for Sync, and Sync when it is let commit', () => {
    const { connection, sent, got, settled } = open()
    connection.fromClient(extended('INSERT INTO t VALUES (1)'))
    connection.pass(split)
    expect(sent()).toBe('PBDEH')
    connection.fromServer(
      Buffer.concat([says.parsed, says.bound, says.noData, says.complete('INSERT 0 1')]),
    )
    expect([connection.phase, got()]).toEqual(['held', ''])
    connection.commit(true)
    expect(sent()).toBe('S')
    connection.fromServer(says.ready('I'))
    expect(got()).toBe('12nCZ')
    expect(settled).toMatchObject([
      { held: true, after: 'T', answer: { tag: 'INSERT 0 1' } },
      { held: false, before: 'T', after: 'I' },
    ])
  })

  test('of a simple query: the answers it does not expect are kept from it', () => {
    const { connection, sent, got } = open()
    connection.fromClient(writeQuery('INSERT INTO t VALUES (1)'))
    connection.pass(split)
    expect(sent()).toBe('PBDEH')
    connection.fromServer(
      Buffer.concat([says.parsed, says.bound, says.noData, says.complete('INSERT 0 1')]),
    )
    connection.commit(true)
    connection.fromServer(says.ready('I'))
    expect(got()).toBe('CZ')
  })

  test('ends at once if the statement fails', () => {
    const { connection, sent, got, settled } = open()
    connection.fromClient(writeQuery('INSERT INTO t VALUES (1)'))
    connection.pass(split)
    connection.fromServer(Buffer.concat([says.parsed, says.bound, says.noData]))
    sent()
    connection.fromServer(says.error('23505'))
    expect([sent(), settled]).toEqual(['S', []])
    connection.fromServer(says.ready('I'))
    expect(got()).toBe('EZ')
    expect(settled).toMatchObject([{ held: false, answer: { error: { sqlstate: '23505' } } }])
  })

  test.each([
    'BEGIN',
    'COMMIT',
    'SET a = 1',
    'COPY t FROM STDIN',
    'CREATE INDEX CONCURRENTLY i ON t (a)',
    'CREATE DATABASE d',
    'VACUUM',
  ])('is not done for %s', (text) => {
    const { connection, sent } = open()
    connection.fromClient(writeQuery(text))
    connection.pass(split)
    expect(sent()).toBe('Q')
  })

  test.each([
    `-- note; with a semicolon\nSELECT 1`,
    `/* a /* nested; */ one */ INSERT INTO t VALUES ('a;b')`,
    `SELECT $tag$ ; $tag$`,
    `SELECT E'\\';' AS "semi;colon"`,
    `(SELECT 1) UNION (SELECT 2);`,
    `WITH a AS (SELECT 1) DELETE FROM t`,
    'CALL p()',
    'DO $$ BEGIN PERFORM 1; END $$',
  ])('is done for one statement, whatever is inside: %s', (text) => {
    const { connection, sent } = open()
    connection.fromClient(writeQuery(text))
    connection.pass(split)
    expect(sent()).toBe('PBDEH')
  })
})

describe('a query string of several statements', () => {
  const done = (tag: string): Buffer =>
    Buffer.concat([says.parsed, says.bound, says.noData, says.complete(tag)])
  const insert = 'INSERT INTO t VALUES (1)'

  test('is taken apart, in one transaction that its end commits', () => {
    const { connection, sent, got, parked, settled } = open()
    connection.fromClient(writeQuery(`${insert}; SELECT 1`))
    expect(parked).toEqual([insert])
    connection.pass(split)
    expect(sent()).toBe('PBDEH')
    connection.fromServer(done('INSERT 0 1'))
    expect([parked.at(-1), connection.phase, connection.state]).toEqual(['SELECT 1', 'parked', 'T'])
    connection.pass(split)
    expect(sent()).toBe('PBDEH')
    connection.fromServer(Buffer.concat([says.parsed, says.bound, says.column('n')]))
    connection.fromServer(Buffer.concat([says.row('1'), says.complete('SELECT 1')]))
    connection.commit(true)
    expect(sent()).toBe('S')
    connection.fromServer(says.ready('I'))
    // As for one simple query.
    expect([got(), connection.phase, connection.state]).toEqual(['CTDCZ', 'idle', 'I'])
    expect(settled).toMatchObject([
      { before: 'I', after: 'T', held: false },
      { before: 'T', after: 'T', held: true },
      { before: 'T', after: 'I', held: false },
    ])
  })

  test('is over with the first failure', () => {
    const { connection, sent, got, parked, settled } = open()
    connection.fromClient(Buffer.concat([writeQuery(`${insert}; SELECT 1; SELECT 2`)]))
    connection.fromClient(writeQuery('SELECT 3'))
    connection.pass(split)
    connection.fromServer(done('INSERT 0 1'))
    connection.pass(split)
    sent()
    connection.fromServer(Buffer.concat([says.parsed, says.bound, says.error('22012')]))
    expect([sent(), got()]).toEqual(['S', 'C'])
    connection.fromServer(says.ready('I'))
    expect([got(), parked.at(-1)]).toEqual(['EZ', 'SELECT 3'])
    expect(settled.at(-1)).toMatchObject({ before: 'T', after: 'I' })
  })

  test('that begins and ends a transaction is in it from BEGIN to COMMIT', () => {
    const { connection, sent, settled } = open()
    connection.fromClient(writeQuery(`BEGIN; ${insert}; COMMIT; SELECT 1`))
    for (const tag of ['BEGIN', 'INSERT 0 1', 'COMMIT']) {
      connection.pass(split)
      connection.fromServer(done(tag))
    }
    connection.pass(whole)
    expect(sent()).toBe('PBDEHPBDEHPBDEHPBDES')
    connection.fromServer(Buffer.concat([done('SELECT 0'), says.ready('I')]))
    expect(settled.map(({ before, after }) => before + after)).toEqual(['IT', 'TT', 'TI', 'II'])
  })

  test.each([
    'INSERT INTO t VALUES (1); CALL p()',
    'LOCK TABLE t; SELECT 1',
    'SELECT 1; COMMIT',
    'BEGIN; SELECT 1; COMMIT AND CHAIN',
    'SELECT 1; VACUUM',
  ])('stays whole if a part would mean something else alone: %s', (text) => {
    const { connection, sent } = open()
    connection.fromClient(writeQuery(text))
    connection.pass(split)
    expect(sent()).toBe('Q')
  })

  test('of a crash the client hears once', () => {
    const { connection, got } = open()
    connection.fromClient(writeQuery(`${insert}; ${insert}; SELECT 1`))
    connection.pass(split)
    connection.fromServer(done('INSERT 0 1'))
    expect(got()).toBe('C')
    connection.freeze()
    connection.hangUp()
    connection.bury()
    expect(got()).toBe('EZ')
  })
})

describe('other traffic', () => {
  test('COPY: the data passes', () => {
    const { connection, sent, got } = open()
    connection.fromClient(writeQuery('COPY t FROM STDIN'))
    connection.pass(split)
    connection.fromServer(writeFrame('G', Buffer.from([0]), int16(0)))
    expect(got()).toBe('G')
    connection.fromClient(Buffer.concat([writeFrame('d', Buffer.from('1\n')), writeFrame('c')]))
    expect(sent()).toBe('Qdc')
    connection.fromServer(Buffer.concat([says.complete('COPY 1'), says.ready('I')]))
    expect(got()).toBe('CZ')
  })

  test('notifications come at any time', () => {
    const { connection, got } = open()
    connection.fromServer(writeFrame('A', int32(1), zeroTerminated('c'), zeroTerminated('p')))
    expect(got()).toBe('A')
  })

  test('a deadlock that was made by a cancellation looks like one', () => {
    const { connection, settled } = open()
    connection.fromClient(writeQuery('UPDATE t SET a = 1'))
    connection.pass(whole)
    connection.answerAsDeadlock('Process 1 waits for process 2.')
    connection.fromServer(Buffer.concat([says.error('57014'), says.ready('E')]))
    expect(settled).toMatchObject([
      { answer: { error: { sqlstate: '40P01', message: 'deadlock detected' } } },
    ])
  })

  test('goodbye ends the session after what was sent before it', () => {
    const { connection, sent, got } = open()
    connection.fromClient(Buffer.concat([writeQuery('SELECT 1'), terminateMessage]))
    connection.pass(whole)
    expect(sent()).toBe('Q')
    connection.fromServer(Buffer.concat([says.complete('SELECT 1'), says.ready('I')]))
    expect([sent(), got()]).toEqual(['X', 'CZ!'])
  })
})

describe('a crash', () => {
  test('is silence first, errors later, and a new session in the end', async () => {
    const { connection, sent, got, settled, parked } = open()
    connection.fromClient(
      Buffer.concat([writeParse('s1', 'SELECT $1', [23]), syncMessage, writeQuery('SELECT 1')]),
    )
    connection.pass(whole)
    connection.fromServer(Buffer.concat([says.parsed, says.ready('I')]))
    sent()
    got()
    connection.freeze()
    connection.hangUp()
    connection.fromClient(writeQuery('SELECT 2'))
    expect([got(), sent()]).toEqual(['', ''])
    connection.bury()
    // One error for the unit that waited and one for what was sent since.
    expect(got()).toBe('EZEZ')
    connection.fromClient(writeQuery('ROLLBACK'))
    expect(got()).toBe('EZ')
    const revived = connection.revive()
    await Promise.resolve()
    await Promise.resolve()
    // What was prepared by name is prepared again.
    expect(sent()).toBe('PS')
    connection.fromServer(Buffer.concat([says.parsed, says.ready('I')]))
    await revived
    expect([connection.pid, connection.phase, got()]).toEqual([4712, 'idle', ''])
    connection.fromClient(writeQuery('SELECT 3'))
    expect([parked.at(-1), settled.length]).toEqual(['SELECT 3', 1])
  })
})
