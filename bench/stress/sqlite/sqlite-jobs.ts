import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { type Holdfast, isHoldfastError, lockKey } from '../../../packages/holdfast/src/sqlite.ts'
import type { Random } from '../../harness/random.ts'

/** What a job has. */
export interface Work {
  readonly hf: Holdfast<DatabaseSync>
  /** A connection of its own, that commits each statement unless it is told otherwise. */
  readonly db: DatabaseSync
  readonly about: string
  readonly random: Random
  readonly times: number
  /** Callers that were not served. */
  readonly refused: string[]
}

type Job = (work: Work) => Promise<readonly string[]>

/** Lets everybody else of this process, and of others, go on. */
const others = (): Promise<void> => new Promise(setImmediate)

/** As a process stands still that is paused, or collects garbage. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** In a transaction as SQLite begins it: it may read, and be refused when it writes. */
async function deferred<T>({ db, refused }: Work, body: () => Promise<T>): Promise<T | undefined> {
  db.exec('BEGIN')
  try {
    const result = await body()
    db.exec('COMMIT')
    return result
  } catch (error) {
    db.exec('ROLLBACK')
    refused.push(`${(error as { errcode?: number }).errcode}`)
    return undefined
  }
}

/** Check, let others in, write: one seat more, and a line about it. */
async function take(db: DatabaseSync, seat: number, id: string): Promise<void> {
  const row = db.prepare('SELECT taken FROM seat WHERE id = ?').get(seat)
  await others()
  db.prepare('UPDATE seat SET taken = ? WHERE id = ?').run(Number(row?.['taken']) + 1, seat)
  db.prepare('INSERT INTO line (seat, id) VALUES (?, ?)').run(seat, id)
}

function locksBy(run: (work: Work, seat: number, id: string) => Promise<boolean>): Job {
  return async (work) => {
    const done: string[] = []
    for (let at = 0; at < work.times; at += 1) {
      const id = randomUUID()
      if (await run(work, work.random.integer(0, 4), id)) done.push(id)
    }
    return done
  }
}

/** Whether it was done; who was told that somebody else was first has to begin again. */
async function versioned(run: () => Promise<void>): Promise<boolean> {
  try {
    await run()
    return true
  } catch (error) {
    if (!isHoldfastError(error, 'ROWS_VERSION_CONFLICT')) throw error
    return false
  }
}

async function effect(db: DatabaseSync, about: string): Promise<string> {
  const id = randomUUID()
  db.prepare('INSERT INTO effect (about, id) VALUES (?, ?)').run(about, id)
  await others()
  return id
}

/** The effect of somebody before, found as one would find it. */
function known(db: DatabaseSync, about: string): string | undefined {
  const row = db.prepare('SELECT id FROM effect WHERE about = ?').get(about)
  return row === undefined ? undefined : String(row['id'])
}

/** As often as is asked for, at once. */
function onceBy(receive: (work: Work, at: number) => Promise<string | undefined>): Job {
  return async (work) => {
    const answers = await Promise.all(
      Array.from({ length: work.times }, (_, at) => receive(work, at)),
    )
    return answers.filter((answer) => answer !== undefined)
  }
}

const ttlMs = 120

/** Takes a lease, stands still for longer than it lasts or not, writes. */
function leasesBy(
  write: (work: Work, token: bigint, guard: (tx: DatabaseSync) => Promise<void>) => Promise<void>,
): Job {
  return async (work) => {
    const { hf, about, random, times } = work
    const told: string[] = []
    for (let at = 0; at < times; at += 1) {
      const lease = await hf.leases.acquire(about, {
        ttl: ttlMs,
        renew: false,
        wait: '60 s',
        retryEvery: 5,
      })
      if (random.integer(0, 2) > 0) standStill(random.integer(ttlMs, 3 * ttlMs))
      try {
        await write(work, lease.token, (tx) => lease.guard(tx))
        told.push('written')
      } catch (error) {
        if (!isHoldfastError(error, 'LEASE_LOST')) throw error
        told.push('lost')
      }
      await lease.release()
    }
    return told
  }
}

function note(db: DatabaseSync, about: string, token: bigint): void {
  db.prepare('INSERT INTO written (lease, token) VALUES (?, ?)').run(about, token)
}

const claimMs = 150

/** Works on rows until none of this round is left. */
function claimsBy(
  end: (work: Work, claims: ReturnType<typeof claimsOf>, claim: Claimed) => Promise<void>,
): Job {
  return async (work) => {
    const claims = claimsOf(work)
    const told: string[] = []
    while (left(work) > 0) {
      await claims.recover()
      for (const claim of await claims.claim(3)) {
        if (work.random.integer(0, 5) === 0) standStill(work.random.integer(claimMs, 2 * claimMs))
        try {
          await end(work, claims, claim)
          told.push('done')
        } catch (error) {
          if (!isHoldfastError(error, 'CLAIM_LOST')) throw error
          told.push('lost')
        }
      }
      await others()
    }
    return told
  }
}

function claimsOf({ hf, about }: Work) {
  return hf.claims<{ id: number }>({
    table: 'job',
    where: { batch: about },
    lease: claimMs,
    columns: { attempts: 'attempts' },
    maxAttempts: 1_000,
  })
}

type Claimed = Awaited<ReturnType<ReturnType<typeof claimsOf>['claim']>>[number]

function left({ db, about }: Work): number {
  const text = "SELECT COUNT(*) AS n FROM job WHERE batch = ? AND status <> 'done'"
  return Number(db.prepare(text).get(about)?.['n'])
}

function worked(db: DatabaseSync, about: string, id: number): void {
  db.prepare('INSERT INTO effect (about, id) VALUES (?, ?)').run(about, String(id))
}

/** Scheduled instants a week apart: none comes by itself. */
const weekly = { every: '7 days', missed: { all: 100 } } as const

export const sqliteJobs = {
  locks: locksBy(async ({ hf }, seat, id) => {
    await hf.guard(lockKey('seat', seat), (tx) => take(tx, seat, id))
    return true
  }),
  'locks: none': locksBy(async ({ db }, seat, id) => {
    await take(db, seat, id)
    return true
  }),
  'locks: deferred': locksBy(
    async (work, seat, id) =>
      (await deferred(work, async () => (await take(work.db, seat, id), true))) === true,
  ),

  rows: locksBy(async ({ hf }, seat, id) =>
    versioned(async () => {
      await hf.rows.optimistic(
        async (tx) => {
          const row = tx.prepare('SELECT taken, version FROM seat WHERE id = ?').get(seat)
          await others()
          const version = Number(row?.['version'])
          const set = { taken: Number(row?.['taken']) + 1 }
          await hf.rows.updateVersioned(tx, 'seat', seat, { version, set })
          tx.prepare('INSERT INTO line (seat, id) VALUES (?, ?)').run(seat, id)
        },
        { retry: { attempts: 50, budgetMs: 20_000 } },
      )
    }),
  ),
  'rows: version check': locksBy(async ({ hf }, seat, id) =>
    versioned(async () => {
      await hf.rows.withVersionCheck<{ taken: number }, number>('seat', seat, {
        work: async ({ taken }) => {
          await others()
          return Number(taken) + 1
        },
        write: async (tx, _, taken) => {
          tx.prepare('UPDATE seat SET taken = ? WHERE id = ?').run(taken, seat)
          tx.prepare('INSERT INTO line (seat, id) VALUES (?, ?)').run(seat, id)
        },
      })
    }),
  ),
  /** The lock comes after what is relied on was read. */
  'rows: read before lock': locksBy(async ({ hf, db }, seat, id) => {
    const row = db.prepare('SELECT taken FROM seat WHERE id = ?').get(seat)
    await others()
    await hf.guard(lockKey('seat', seat), async (tx) => {
      tx.prepare('UPDATE seat SET taken = ? WHERE id = ?').run(Number(row?.['taken']) + 1, seat)
      tx.prepare('INSERT INTO line (seat, id) VALUES (?, ?)').run(seat, id)
    })
    return true
  }),

  once: onceBy(async ({ hf, about }, at) => {
    const body = (tx: DatabaseSync): Promise<string> => effect(tx, about)
    if (at % 2 === 0) return (await hf.once(about, body)).result
    return await hf.transaction(async (tx) => (await hf.once(tx, about, body)).result)
  }),
  /** Under the lock, and without a key that is remembered. */
  'once: no key row': onceBy(
    async ({ hf, about }) => await hf.transaction((tx) => effect(tx, about)),
  ),
  'once: no transaction': onceBy(async ({ db, about }) => {
    const before = known(db, about)
    await others()
    return before ?? (await effect(db, about))
  }),
  'once: deferred': async (work) => {
    const answers: string[] = []
    for (let at = 0; at < work.times; at += 1) {
      const answer = await deferred(work, async () => {
        const before = known(work.db, work.about)
        await others()
        return before ?? (await effect(work.db, work.about))
      })
      if (answer !== undefined) answers.push(answer)
    }
    return answers
  },

  leases: leasesBy(async ({ hf, about }, token, guard) => {
    await hf.transaction(async (tx) => {
      await guard(tx)
      await others()
      note(tx, about, token)
    })
  }),
  'leases: no fence': leasesBy(async ({ hf, about }, token) => {
    await hf.transaction(async (tx) => note(tx, about, token))
  }),
  'leases: look without lock': leasesBy(async ({ hf, db, about, random }, token) => {
    const seen = await hf.leases.read(about)
    if (seen?.state !== 'held' || seen.token !== token) return
    if (random.integer(0, 2) > 0) standStill(2 * ttlMs)
    note(db, about, token)
  }),

  claims: claimsBy(async ({ hf, about }, claims, claim) => {
    await hf.transaction(async (tx) => {
      worked(tx, about, claim.row.id)
      await others()
      await claims.complete(tx, claim)
    })
  }),
  'claims: no fence': claimsBy(async ({ hf, about }, _, { row }) => {
    await hf.transaction(async (tx) => {
      worked(tx, about, row.id)
      tx.prepare("UPDATE job SET status = 'done' WHERE id = ?").run(row.id)
    })
  }),
  'claims: no transaction': async (work) => {
    const { db, about } = work
    const next = db.prepare("SELECT id FROM job WHERE batch = ? AND status = 'pending' LIMIT 1")
    const told: string[] = []
    for (let row = next.get(about); row !== undefined; row = next.get(about)) {
      await others()
      db.prepare("UPDATE job SET status = 'done' WHERE id = ?").run(Number(row['id']))
      worked(db, about, Number(row['id']))
      told.push('done')
    }
    return told
  },
  'claims: deferred': async (work) => {
    const { db, about } = work
    for (let tries = 0; left(work) > 0 && tries < 50; tries += 1) {
      await deferred(work, async () => {
        const text = "SELECT id FROM job WHERE batch = ? AND status = 'pending' LIMIT 1"
        const id = Number(db.prepare(text).get(about)?.['id'] ?? 0)
        await others()
        db.prepare("UPDATE job SET status = 'done' WHERE id = ?").run(id)
      })
    }
    return []
  },

  async schedule({ hf, about }) {
    const outcomes = await hf
      .schedule({
        name: about,
        ...weekly,
        guarantee: 'transactional',
        handler: async (tx, { at }) => {
          await others()
          tx.prepare('INSERT INTO effect (about, id) VALUES (?, ?)').run(
            about,
            String(at.getTime()),
          )
        },
      })
      .fire()
    return outcomes.map(({ outcome }) => outcome)
  },
  /** Its effect is fenced, and at most once more than it was told. */
  async 'schedule at least once'({ hf, about }) {
    const outcomes = await hf
      .schedule({
        name: about,
        ...weekly,
        guarantee: 'at-least-once',
        lease: '2 s',
        retryAfter: 1,
        attempts: 100,
        handler: async ({ at, guard }) =>
          await hf.transaction(async (tx) => {
            await guard(tx)
            const text = 'INSERT INTO effect (about, id) VALUES (?, ?)'
            tx.prepare(text).run(about, String(at.getTime()))
          }),
      })
      .fire()
    return outcomes.map(({ outcome }) => outcome)
  },
  async 'schedule: no transaction'({ db, about, times }) {
    for (let at = 0; at < times; at += 1) {
      const row = db.prepare('SELECT last_tick FROM holdfast_schedule WHERE name = ?').get(about)
      const next = Number(row?.['last_tick']) + 1
      await others()
      db.prepare('UPDATE holdfast_schedule SET last_tick = ? WHERE name = ?').run(next, about)
      db.prepare('INSERT INTO effect (about, id) VALUES (?, ?)').run(about, String(next))
    }
    return []
  },
} satisfies Record<string, Job>

export type SqliteJob = keyof typeof sqliteJobs
