import { expect, test } from 'vitest'
import { crewOf, told } from '../support/crew.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { expireClaims, fill, ids, openOutbox, outboxTable, rowsOf } from '../support/outbox.ts'

const tables = [
  ...outboxTable(),
  'CREATE TABLE effect (id INTEGER PRIMARY KEY, work TEXT, who TEXT)',
]

eachSqlite(tables, (place) => {
  const crew = crewOf(place)
  /** How often each row was worked on. */
  const effects = (): readonly number[] =>
    (
      place.open().prepare('SELECT COUNT(*) AS n FROM effect GROUP BY work').all() as {
        readonly n: number
      }[]
    ).map(({ n }) => n)

  test('of four processes, one has each row', async () => {
    await openOutbox(place)
    fill(place, 40)
    const done = (await crew.race('claims', 4)).flat()
    expect(done).toHaveLength(40)
    expect(effects()).toEqual(Array.from({ length: 40 }, () => 1))
    expect(rowsOf(place).every(({ state, tries }) => state === 'done' && tries === 1)).toBe(true)
  })

  test('control: looked at and written without a transaction, several have the same row', async () => {
    await openOutbox(place)
    fill(place, 3)
    expect(await crew.collide('claims by hand', 3)).toEqual([['1'], ['1'], ['1']])
  })

  test('rows of one that is killed come back when their leases are over, and not before', async () => {
    const { claims } = await openOutbox(place)
    fill(place, 2)
    const child = await crew.start('claim and hold')
    child.send('go')
    expect(await told(child)).toEqual([1, 2])
    await crew.kill(child)
    expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
    expect(await claims.claim(2)).toEqual([])
    expireClaims(place)
    expect(await claims.recover()).toEqual({ freed: 2, dead: 0 })
    const again = await claims.claim(2)
    expect(ids(again)).toEqual([1, 2])
    expect(again.map(({ attempt }) => attempt)).toEqual([2, 2])
  })

  test('of one that is killed before it commits, work and completion are undone together', async () => {
    const { claims } = await openOutbox(place)
    fill(place, 2)
    const child = await crew.start('complete and hold')
    child.send('go')
    expect(await told(child)).toBe('holding')
    await crew.kill(child)
    expect(effects()).toEqual([])
    expect(rowsOf(place).map(({ state }) => state)).toEqual(['busy', 'busy'])
    expireClaims(place)
    expect(await claims.recover()).toEqual({ freed: 2, dead: 0 })
    expect(ids(await claims.claim(2))).toEqual([1, 2])
  })
})
