import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rounds, sample, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type HoldfastError } from '../../../src/index.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import {
  callersTable,
  doTogether,
  doWork,
  knowBooks,
  type Work,
  works,
} from '../../support/ledger-work.ts'

/**
 * Whoever dies, wherever: the application after each of its statements, the backend or the network
 * before the answer arrives. The same operation id again ends in exactly one application.
 */
const fixture = ledgerFixture(callersTable)
const modes = [
  ['alone', false],
  ["in the caller's transaction", true],
] as const

/** The operation, and what must have happened before it. */
async function prepared(what: Work['what']): Promise<Work> {
  const key = fresh()
  const quota = fixture.hf.quota({ name: 'work', limit: 100, per: 'lifetime' })
  const of = fresh()
  await quota.consume(key, 5, { operationId: of })
  const made = await quota.hold(key, 5, { operationId: fresh(), ttl: '1 h' })
  const { holdId } = made as Verdict<number> & { ok: true; holdId: string }
  return { what, key, operationId: fresh(), holdId, of }
}

/** Everything the operation left behind. */
async function traces({ key, operationId }: Work): Promise<unknown> {
  const { rows } = await fixture.observer.query<{ traces: unknown }>(
    `SELECT jsonb_build_object(
       'movements', (SELECT jsonb_agg(jsonb_build_array(book, kind, sequence, credit, debit, hold)
          ORDER BY book, sequence) FROM holdfast.movements WHERE key = $1),
       'holds', (SELECT jsonb_agg(jsonb_build_array(h.state, h.amount, h.settled,
          h.expires_at > clock_timestamp() + interval '2 hours') ORDER BY h.made_seq)
          FROM holdfast.hold h JOIN holdfast.account a ON a.id = h.account WHERE a.key = $1),
       'done', (SELECT count(*) FROM public.done WHERE operation = $2)) AS traces`,
    [key, operationId],
  )
  return rows[0]?.traces
}

/** What it leaves behind if nobody dies. */
async function undisturbed(what: Work['what'], joined: boolean): Promise<unknown> {
  const work = await prepared(what)
  await (joined ? doTogether(fixture.hf, work) : doWork(fixture.hf, work))
  return await traces(work)
}

/** An application that stops before each statement; see `ledger-child.ts`. */
class Application implements AsyncDisposable {
  readonly #child: ChildProcess
  #statements = 0
  #done = false

  constructor(task: { url: string; name: string; joined: boolean; work: Work }) {
    this.#child = fork(new URL('../../support/ledger-child.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child.on('message', (message) => {
      if (message === 'done') this.#done = true
      else this.#statements += 1
    })
    this.#child.send(task)
  }

  /** Resolves when it is about to send its nth statement; false if it is done before. */
  async reaches(statement: number): Promise<boolean> {
    await waitUntil('a statement or the end', () => {
      return this.#done || this.#statements >= statement || undefined
    })
    return this.#statements >= statement
  }

  go(): void {
    this.#child.send('go')
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

/** What the server knows of a statement that was sent on connections of this name. */
async function lastStatement(name: string): Promise<{ began: string | null; active: boolean }> {
  const { rows } = await fixture.observer.query<{ began: string | null; active: boolean }>(
    `SELECT max(query_start)::text AS began, bool_or(state = 'active') AS active
     FROM pg_stat_activity WHERE application_name = $1`,
    [name],
  )
  return rows[0] as { began: string | null; active: boolean }
}

/** What a dead application had begun is undone or done: nobody holds its account any more. */
async function untilGone({ key }: Work): Promise<void> {
  await waitUntil('the account is free', async () => {
    const free = await fixture.observer
      .query(
        `SELECT FROM holdfast.balance b JOIN holdfast.account a ON a.id = b.account
         WHERE a.key = $1 FOR UPDATE OF b NOWAIT`,
        [key],
      )
      .catch(() => undefined)
    return free && true
  })
}

const again = async (work: Work, joined: boolean): Promise<Verdict<number>> =>
  await (joined ? doTogether(fixture.hf, work) : doWork(fixture.hf, work))

describe.each(modes)('the application is killed, %s', (_, joined) => {
  test.each(sample(works))(
    '%s: before each statement, and before each answer',
    { timeout: 120_000 },
    async (what) => {
      const wanted = await undisturbed(what, joined)
      let killed = 0
      for (let statement = 1; ; statement += 1) {
        for (const answerLost of [false, true]) {
          const work = await prepared(what)
          const before = await traces(work)
          const name = `killed ${fresh().slice(0, 8)}`
          await using wire = await breakableWire(fixture.database.url)
          await using application = new Application({ url: wire.url, name, joined, work })
          let reached = await application.reaches(1)
          for (let step = 1; step < statement && reached; step += 1) {
            application.go()
            reached = await application.reaches(step + 1)
          }
          if (!reached) {
            // One statement alone; BEGIN, the operation, the caller's own and COMMIT together. Before that, one for
            // each book that it has not used before.
            const books = what === 'several' ? 2 : 1
            expect(killed).toBe((joined ? 8 : 2) + 2 * books)
            return
          }
          if (answerLost) {
            const { began } = await lastStatement(name)
            wire.hold()
            application.go()
            await waitUntil('the server has answered', async () => {
              const now = await lastStatement(name)
              return (now.began !== null && now.began !== began && !now.active) || undefined
            })
          }
          await application.kill()
          wire.cut()
          killed += 1
          await untilGone(work)
          expect([before, wanted]).toContainEqual(await traces(work))
          expect(await again(work, joined)).toMatchObject({ ok: true })
          expect(await traces(work)).toEqual(wanted)
        }
      }
    },
  )
})

interface Struck {
  readonly outcome: Verdict<number> | HoldfastError
  readonly left: unknown
}

/** Loses the connection while the operation waits for its account, or when it is done and unanswered. */
async function strike(
  work: Work,
  joined: boolean,
  moment: 'waiting' | 'unanswered',
  wanted: unknown,
): Promise<Struck> {
  await using wire = await breakableWire(fixture.database.url)
  const name = `struck ${fresh().slice(0, 8)}`
  const pool = new pg.Pool({ connectionString: wire.url, max: 1, application_name: name })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const hf = createHoldfast(fromPg(pool))
  await knowBooks(hf)
  const blocker = await fixture.observer.connect()
  await blocker.query('BEGIN')
  if (moment === 'waiting') {
    await blocker.query(
      `SELECT FROM holdfast.balance b JOIN holdfast.account a ON a.id = b.account
       WHERE a.key = $1 FOR UPDATE OF b`,
      [work.key],
    )
  } else if (!joined) wire.hold()
  const running = joined
    ? hf.transaction(
        async (tx) => {
          const verdict = await doWork(hf, work, tx)
          await tx.query('INSERT INTO done VALUES ($1) ON CONFLICT DO NOTHING', [work.operationId])
          if (moment === 'unanswered') wire.hold()
          return verdict
        },
        { retry: { attempts: 1 } },
      )
    : doWork(hf, work)
  const outcome = running.catch((error: unknown) => error as HoldfastError)
  if (moment === 'waiting') {
    await waitUntil('it waits', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = $1 AND cardinality(pg_blocking_pids(pid)) > 0`,
        [name],
      )
      return rows.length > 0 || undefined
    })
  } else {
    await waitUntil('it is done', async () => {
      return JSON.stringify(await traces(work)) === JSON.stringify(wanted) || undefined
    })
    wire.cut()
    wire.release()
  }
  await blocker.query('ROLLBACK')
  blocker.release()
  const told = await outcome
  await pool.end()
  return { outcome: told, left: await traces(work) }
}

const times = rounds(3)

describe.each(['waiting', 'unanswered'] as const)('the connection is lost, %s', (moment) => {
  test.each(sample(works, 3, 1))(
    '%s alone: the answer is found by itself, and it is applied once',
    async (what) => {
      const wanted = await undisturbed(what, false)
      for (let round = 0; round < times; round += 1) {
        const work = await prepared(what)
        const { outcome, left } = await strike(work, false, moment, wanted)
        expect(outcome).toMatchObject({ ok: true })
        expect(left).toEqual(wanted)
        expect(await again(work, false)).toMatchObject({ ok: true })
        expect(await traces(work)).toEqual(wanted)
      }
    },
  )

  test.each(sample(works, 3, 2))(
    "%s in the caller's transaction: said so, and the same again is one",
    async (what) => {
      const wanted = await undisturbed(what, true)
      for (let round = 0; round < times; round += 1) {
        const work = await prepared(what)
        const before = await traces(work)
        const { outcome, left } = await strike(work, true, moment, wanted)
        const code = moment === 'unanswered' ? 'COMMIT_UNKNOWN' : 'CONNECTION_LOST'
        expect(outcome).toMatchObject({ code })
        expect(left).toEqual(moment === 'unanswered' ? wanted : before)
        expect(await again(work, true)).toMatchObject({ ok: true })
        expect(await traces(work)).toEqual(wanted)
      }
    },
  )
})

test('control: the same again under another id is applied twice', async () => {
  const wanted = await undisturbed('consume', false)
  const work = await prepared('consume')
  await strike(work, false, 'unanswered', wanted)
  await again({ ...work, operationId: fresh() }, false)
  expect(await traces(work)).not.toEqual(wanted)
})

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})
