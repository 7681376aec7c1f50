/**
 * What a runtime has to do for Holdfast, one function for each promise. Each throws if it is not kept and gives what it
 * saw. Two Holdfasts with connections of their own stand for two processes: within one, calls of a key wait in memory.
 */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { lockKey } from 'holdfast'
import { on } from 'holdfast/observe'

const id = () => crypto.randomUUID()

/** The error code that a call ends with. */
async function codeOf(call) {
  try {
    await call
  } catch (error) {
    return error.code ?? String(error)
  }
  return 'none'
}

/** Resolves for all when so many have arrived. */
function barrier(count) {
  const { promise, resolve } = Promise.withResolvers()
  let arrived = 0
  return () => {
    arrived += 1
    if (arrived === count) resolve()
    return promise
  }
}

/** A look at the server, again and again, until it says yes. */
async function until(what, look) {
  for (const ends = performance.now() + 20_000; performance.now() < ends; ) {
    if (await look()) return
    await pause(10)
  }
  throw new Error(`never: ${what}`)
}

/** Sessions of this database that wait for a lock. */
const waiting = (look) => async () => {
  const [{ n }] = await look(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  )
  return n === 1
}

async function increment({ run }, tx, name, meanwhile) {
  const [{ n }] = await run(tx, 'SELECT n FROM counter WHERE name = $1', [name])
  await meanwhile()
  await run(tx, 'UPDATE counter SET n = $1 WHERE name = $2', [n + 1, name])
}

/** The second waits in PostgreSQL until the first has committed, and reads what it wrote. */
export async function exclusion({ one, two, look, seed }) {
  const name = await seed()
  const key = lockKey('smoke', name)
  const entered = Promise.withResolvers()
  let second = false
  const first = one.hf.guard(key, (tx) =>
    increment(one, tx, name, async () => {
      entered.resolve()
      await until('the second waits', waiting(look))
      assert.equal(second, false)
    }),
  )
  await entered.promise
  const other = two.hf.guard(key, (tx) => {
    second = true
    return increment(two, tx, name, () => undefined)
  })
  await Promise.all([first, other])
  const [{ n }] = await look('SELECT n FROM counter WHERE name = $1', [name])
  assert.equal(n, 2)
  return n
}

/** The control: the same work without the guard, both reading before either writes. */
export async function lostUpdate({ one, two, look, seed }) {
  const name = await seed()
  const both = barrier(2)
  const write = (side) => side.hf.transaction((tx) => increment(side, tx, name, both))
  await Promise.all([write(one), write(two)])
  const [{ n }] = await look('SELECT n FROM counter WHERE name = $1', [name])
  assert.equal(n, 1)
  return n
}

/** A statement failed, the body caught its error and returned: nothing was saved, and the caller is told. */
export async function swallowedError({ one, look, seed }) {
  const name = await seed()
  const code = await codeOf(
    one.hf.guard(lockKey('smoke', name), async (tx) => {
      await one.run(tx, 'UPDATE counter SET n = 99 WHERE name = $1', [name])
      try {
        await one.run(tx, 'SELECT 1 / 0')
      } catch {
        // As somebody does who only wants to log it.
      }
    }),
  )
  assert.equal(code, 'TX_ROLLED_BACK')
  assert.deepEqual(await look('SELECT n FROM counter WHERE name = $1', [name]), [{ n: 0 }])
  return code
}

/** Its connection is ended by the server while a body runs: an error with a code, nothing saved, the process goes on. */
export async function lostConnection({ one, look, seed }) {
  const name = await seed()
  const code = await codeOf(
    one.hf.guard(
      lockKey('smoke', name),
      async (tx) => {
        await one.run(tx, 'UPDATE counter SET n = 99 WHERE name = $1', [name])
        const [{ pid }] = await one.run(tx, 'SELECT pg_backend_pid() AS pid')
        await look('SELECT pg_terminate_backend($1, 5000)', [pid])
        await one.run(tx, 'SELECT 1')
      },
      { retry: false },
    ),
  )
  assert.equal(code, 'CONNECTION_LOST')
  assert.deepEqual(await look('SELECT n FROM counter WHERE name = $1', [name]), [{ n: 0 }])
  return code
}

/** Somebody else has the lock: refused at once, and after a time limit, with who it is. */
export async function waits({ one, two, seed }) {
  const key = lockKey('smoke', await seed())
  const [entered, leave] = [Promise.withResolvers(), Promise.withResolvers()]
  const holding = one.hf.guard(key, async () => {
    entered.resolve()
    await leave.promise
  })
  await entered.promise
  const heard = []
  const stop = on('lock.timeout', ({ names }) => heard.push(...names))
  try {
    const busy = await codeOf(two.hf.guard(key, async () => undefined, { waitMs: 0 }))
    const late = await codeOf(two.hf.guard(key, async () => undefined, { waitMs: 100 }))
    const deadline = await codeOf(
      two.hf.transaction((tx) => two.run(tx, 'SELECT pg_sleep(30)'), { deadlineMs: 200 }),
    )
    assert.deepEqual([busy, late, deadline], ['LOCK_BUSY', 'LOCK_TIMEOUT', 'TX_DEADLINE'])
    assert.equal(heard.length > 0, true)
    return [busy, late, deadline]
  } finally {
    stop()
    leave.resolve()
    await holding
  }
}

/** A second transaction inside the first could hang: it is known by the context that the body runs in. */
export async function nested({ one, seed }) {
  const key = lockKey('smoke', await seed())
  const code = await codeOf(one.hf.guard(key, () => one.hf.transaction(async () => undefined)))
  assert.equal(code, 'TX_NESTED')
  return code
}

export async function credits({ one, two }) {
  const [mine, theirs] = [one, two].map(({ hf }) => hf.credits({ name: 'credits' }))
  const [user, operationId] = [id(), id()]
  await mine.grant(user, 100, { operationId: id() })
  const spent = await mine.spend(user, 70, { operationId })
  const again = await theirs.spend(user, 70, { operationId })
  const refused = await theirs.spend(user, 70, { operationId: id() })
  assert.deepEqual([spent.ok, spent.replayed, again.replayed], [true, false, true])
  assert.deepEqual([refused.ok, refused.reason, refused.available], [false, 'insufficient', 30])
  return refused.available
}

export async function quota({ one, two }) {
  const user = id()
  const consume = ({ hf }) =>
    hf.quota({ name: 'calls', limit: 10, per: 'day', timeZone: 'UTC' }).consume(user, 1, {
      operationId: id(),
    })
  const verdicts = await Promise.all(
    Array.from({ length: 30 }, (_, at) => consume(at % 2 ? one : two)),
  )
  const accepted = verdicts.filter(({ ok }) => ok).length
  assert.equal(accepted, 10)
  return accepted
}

export async function once({ one, two, look, seed }) {
  const name = await seed()
  const pay = (side) =>
    side.hf.once(`pay:${name}`, async (tx) => {
      await side.run(tx, 'UPDATE counter SET n = n + 1 WHERE name = $1', [name])
      return { paid: 30 }
    })
  const answers = await Promise.all([pay(one), pay(two), pay(one), pay(two)])
  assert.equal(answers.filter(({ replayed }) => replayed).length, 3)
  assert.deepEqual(new Set(answers.map(({ result }) => result.paid)), new Set([30]))
  assert.deepEqual(await look('SELECT n FROM counter WHERE name = $1', [name]), [{ n: 1 }])
  return answers.length
}

/** Whoever had the lease before is refused by the fence, whatever it believes. */
export async function lease({ one, two, look }) {
  const name = `lease-${id()}`
  const first = await one.hf.leases.acquire(name, { ttl: '1 min' })
  assert.equal(await two.hf.leases.tryAcquire(name), undefined)
  await one.hf.transaction((tx) => first.guard(tx))
  // As if its time had run out while its process stood still.
  await look(
    "UPDATE holdfast.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE name = $1",
    [name],
  )
  const second = await two.hf.leases.acquire(name)
  assert.equal(second.token > first.token, true)
  const stale = await codeOf(one.hf.transaction((tx) => first.guard(tx)))
  assert.equal(stale, 'LEASE_LOST')
  assert.equal(first.signal.aborted, true)
  assert.equal(await second.release(), true)
  return stale
}

/** A leader by session learns that its connection is gone, and leads again on another one. */
export async function leader({ one, look }) {
  if (one.driver.session === undefined) return 'no session'
  const name = `leader-${id()}`
  const candidate = one.hf.leader({ name, session: one.driver })
  const terms = []
  await candidate.run(async ({ signal, token }) => {
    terms.push(token)
    if (terms.length > 1) return
    const lost = new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(signal.reason))
    })
    await look(`SELECT pg_terminate_backend(pid, 5000) FROM pg_locks
      WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
    assert.equal((await lost).code, 'LEASE_LOST')
  })
  assert.equal(terms.length, 2)
  assert.equal(terms[1] > terms[0], true)
  return terms.length
}

/** A worker that would look again in a minute is woken by NOTIFY. */
export async function wakes({ one, two }) {
  if (one.driver.listen === undefined) return 'no listening'
  const queue = `queue-${id()}`
  const done = Promise.withResolvers()
  const listening = one.hf.work({ queue, notify: true })
  const worker = await listening.run({
    poll: { min: '60 s', max: '60 s' },
    handler: async ({ payload }) => done.resolve(payload.text),
  })
  await two.hf.work({ queue, notify: true }).enqueue({ payload: { text: 'hello' } })
  const text = await done.promise
  await worker.stop()
  assert.equal(text, 'hello')
  return text
}

export async function claims({ one, two, look }) {
  await look('DELETE FROM outbox')
  await look("INSERT INTO outbox (body) SELECT 'message' FROM generate_series(1, 20)")
  const handled = []
  const work = ({ hf }) =>
    hf.claims({ table: 'outbox', lease: '30 s' }).run({
      concurrency: 3,
      handler: async ({ id: row }) => {
        handled.push(String(row))
      },
    })
  const workers = await Promise.all([work(one), work(two)])
  await Promise.all(workers.map((worker) => worker.drain()))
  assert.equal(handled.length, 20)
  assert.equal(new Set(handled).size, 20)
  return handled.length
}

export async function schedule({ one, two, look, seed }) {
  const name = await seed()
  const at = new Date(Date.now() - 60_000)
  const fire = (side) =>
    side.hf
      .schedule({
        name,
        guarantee: 'transactional',
        handler: async (tx) => {
          await side.run(tx, 'UPDATE counter SET n = n + 1 WHERE name = $1', [name])
        },
      })
      .fireAt(at)
  const outcomes = await Promise.all([fire(one), fire(two), fire(one)])
  assert.equal(outcomes.filter(({ outcome }) => outcome === 'done').length, 1)
  assert.deepEqual(await look('SELECT n FROM counter WHERE name = $1', [name]), [{ n: 1 }])
  return 1
}
