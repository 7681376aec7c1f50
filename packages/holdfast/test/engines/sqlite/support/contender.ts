/**
 * A process that works on a file where others do: `node contender.ts <client> <file> <what> <argument>`. Says `ready`, waits
 * for a message, works, says what it has done. Types are erased by Node.
 */
import { once } from 'node:events'
import { setTimeout as soon } from 'node:timers/promises'
import { createHoldfast, type Holdfast, type ScheduleOptions } from '../../../../src/sqlite.ts'
import { outbox, type OutboxRow } from './outbox.ts'
import { type ClientName, driverBy, type Handle, openHandle, value } from './sqlite-clients.ts'

const [client, file = '', what = '', argument = ''] = process.argv.slice(2)
const name = client as ClientName
const driver = driverBy(name, () => openHandle(name, file))
const hf: Holdfast<Handle> = createHoldfast(driver, { wait: '30 s' })
const me = String(process.pid)

/** Until the process is killed. */
async function hold(): Promise<never> {
  process.send?.('holding')
  setInterval(() => undefined, 1_000)
  await once(process, 'disconnect')
  process.exit()
}

/** Until all have seen the same. */
async function looked(): Promise<void> {
  process.send?.('looked')
  await once(process, 'message')
}

/** On a connection that commits each statement, and waits for others as one would set it. */
async function byHand(job: (db: Handle) => Promise<readonly string[]>): Promise<readonly string[]> {
  const db = openHandle(name, file)
  db.exec('PRAGMA busy_timeout = 10000')
  try {
    return await job(db)
  } finally {
    db.close()
  }
}

const keys = Array.from({ length: 30 }, (_, at) => `key ${at}`)

function work(tx: Handle, key: string): void {
  tx.prepare('INSERT INTO effect (work, who) VALUES (?, ?)').run(key, me)
}

const jobs: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  async once() {
    const ran: string[] = []
    for (const key of keys) {
      const { replayed } = await hf.once(key, async (tx) => {
        await new Promise(setImmediate)
        work(tx, key)
      })
      if (!replayed) ran.push(key)
    }
    return ran
  },
  /** Looked up and remembered as one would without a transaction. */
  async 'once by hand'() {
    return await byHand(async (db) => {
      const isKnown = value(db, 'SELECT 1 FROM effect WHERE work = ?', argument) !== undefined
      await looked()
      if (isKnown) return []
      work(db, argument)
      return [argument]
    })
  },
  async 'once and hold'() {
    await hf.once(argument, async (tx) => {
      work(tx, argument)
      return await hold()
    })
    return []
  },
  /** Takes a lease as often as is asked for, and counts under it: outside of any transaction, in two steps. */
  async lease() {
    const db = openHandle(name, file)
    db.exec('PRAGMA busy_timeout = 5000')
    const tokens: string[] = []
    for (let at = 0; at < Number(argument); at += 1) {
      await using lease = await hf.leases.acquire('counter', { wait: '60 s', retryEvery: 10 })
      const seen = Number(value(db, 'SELECT v FROM counter'))
      await soon(2)
      db.prepare('UPDATE counter SET v = ?').run(seen + 1)
      tokens.push(String(lease.token))
    }
    db.close()
    return tokens
  },
  /** The same without the lease. */
  async 'no lease'() {
    return await byHand(async (db) => {
      const seen = Number(value(db, 'SELECT v FROM counter'))
      await looked()
      db.prepare('UPDATE counter SET v = ?').run(seen + 1)
      return []
    })
  },
  async 'lease and hold'() {
    const { token } = await hf.leases.acquire(argument)
    process.send?.(String(token))
    return [await hold()]
  },
  async 'guard and hold'() {
    const lease = await hf.leases.acquire(argument)
    await hf.transaction(async (tx) => {
      await lease.guard(tx)
      tx.prepare('INSERT INTO written (lease, token) VALUES (?, ?)').run(argument, lease.token)
      return await hold()
    })
    return []
  },
  /** Leads until it is told to stop; says the tokens of its terms. */
  async lead() {
    const stop = new AbortController()
    process.once('message', () => stop.abort())
    const tokens: string[] = []
    await hf.leader({ name: argument, ttl: 1_000, retryEvery: 20 }).run(
      async ({ token, signal }) => {
        tokens.push(String(token))
        process.send?.('leads')
        if (!signal.aborted) await once(signal, 'abort')
      },
      { signal: stop.signal },
    )
    return tokens
  },
  /** Runs what is due of a schedule, once; says which ticks it ran. */
  async 'fire transactional'() {
    return await fired({
      ...schedule,
      guarantee: 'transactional',
      handler: async (tx, { at }) => {
        await new Promise(setImmediate)
        work(tx, String(at.getTime()))
      },
    })
  },
  async 'fire at least once'() {
    return await fired({
      ...schedule,
      guarantee: 'at-least-once',
      handler: async ({ at }) => await hf.transaction(async (tx) => work(tx, String(at.getTime()))),
    })
  },
  async 'fire and hold'() {
    return await fired({
      ...schedule,
      guarantee: 'transactional',
      handler: async (tx, { at }) => {
        work(tx, String(at.getTime()))
        await hold()
      },
    })
  },
  /** A due tick as one would find and note it without a transaction. */
  async 'fire by hand'() {
    return await byHand(async (db) => {
      const next = Number(value(db, 'SELECT last_tick FROM holdfast_schedule')) + 1
      await looked()
      db.prepare('UPDATE holdfast_schedule SET last_tick = ?').run(next)
      return [String(next)]
    })
  },
  /** Claims rows and writes down what it has done with each, until nothing is left. */
  async claims() {
    const claims = hf.claims<OutboxRow>(outbox)
    const done: string[] = []
    for (let all = await claims.claim(3); all.length > 0; all = await claims.claim(3)) {
      for (const claim of all) {
        await hf.transaction(async (tx) => {
          work(tx, String(claim.row.id))
          await claims.complete(tx, claim)
        })
        done.push(String(claim.row.id))
      }
    }
    return done
  },
  /** The same as one would without a transaction: a look, then a write. */
  async 'claims by hand'() {
    return await byHand(async (db) => {
      const id = Number(value(db, "SELECT id FROM outbox WHERE state = 'new' ORDER BY id LIMIT 1"))
      await looked()
      db.prepare("UPDATE outbox SET state = 'done' WHERE id = ?").run(id)
      work(db, String(id))
      return [String(id)]
    })
  },
  async 'claim and hold'() {
    const claimed = await hf.claims<OutboxRow>(outbox).claim(2)
    process.send?.(claimed.map(({ row }) => row.id))
    return [await hold()]
  },
  async 'complete and hold'() {
    const claims = hf.claims<OutboxRow>(outbox)
    const claimed = await claims.claim(2)
    await hf.transaction(async (tx) => {
      for (const { row } of claimed) work(tx, String(row.id))
      await claims.complete(tx, claimed)
      return await hold()
    })
    return []
  },
}

/** So long apart that no test meets a real tick of it. */
const schedule = { name: argument, every: '7 days', missed: { all: 20 } } as const

async function fired(options: ScheduleOptions<Handle>): Promise<readonly string[]> {
  const outcomes = await hf.schedule(options).fire()
  return outcomes.filter(({ outcome }) => outcome === 'done').map(({ at }) => String(at?.getTime()))
}

process.once('message', () => {
  void jobs[what]?.().then((told) => {
    driver.close()
    process.send?.(told)
    process.disconnect()
  })
})
process.send?.('ready')
