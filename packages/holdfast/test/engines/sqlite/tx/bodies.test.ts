import { expect, test } from 'vitest'
import { lockKey } from '../../../../src/core/locks/lock-key.ts'
import { createHoldfast } from '../../../../src/sqlite.ts'
import { bodiesOf, bodyTables, lieIn, runBody, type Told, type Written } from '../support/bodies.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, inTransaction } from '../support/sqlite-clients.ts'

const count = process.env['HOLDFAST_ENGINES'] === 'all' ? 3_000 : 400

/**
 * Whatever a body does, its caller is never told "committed" when something else is there, nor "nothing is saved" when
 * something is.
 */
eachSqlite(bodyTables, (place) => {
  type Run = (body: (tx: Handle) => Promise<void>) => Promise<unknown>

  const liesOf = async (run: Run, without?: string): Promise<readonly string[]> => {
    const looking = place.open()
    const lies: string[] = []
    for (const [at, body] of bodiesOf(1, count).entries()) {
      const steps = body.filter((step) => step !== without)
      const written: Written = { rows: [] }
      const told: Told = await run(async (tx) => runBody(steps, tx, at, written)).then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
      const lie = lieIn(told, written, looking, at)
      if (lie !== undefined) lies.push(`${steps.join(', ')}: ${lie}`)
    }
    return lies
  }

  test('generated bodies are told the truth', async () => {
    const hf = createHoldfast(place.driver(), { locks: { watch: false } })
    expect(await liesOf((body) => hf.guard(lockKey('body', 1), body))).toEqual([])
  })

  test('control: with BEGIN, COMMIT and ROLLBACK by hand they are told wrong things about each of these', async () => {
    const db = place.open()
    const byHand: Run = async (body) => {
      db.exec('BEGIN IMMEDIATE')
      try {
        await body(db)
        if (inTransaction(db)) db.exec('COMMIT')
      } catch (error) {
        if (inTransaction(db)) db.exec('ROLLBACK')
        throw error
      }
    }
    // Of better-sqlite3 nothing else works beside a result that nobody reads.
    const lies = await liesOf(byHand, 'unread')
    const blamed = [
      'or rollback',
      'on conflict rollback',
      'raise rollback',
      'commit',
      'rollback,',
      'hidden commit',
    ]
    expect(blamed.filter((step) => !lies.some((lie) => lie.includes(step)))).toEqual([])
  })
})
