import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import type { Executor, SessionDriver } from '../../../src/core/driver.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import type { PrimaryFailure } from '../../../src/tx/ask-each.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, inScope, lockKey } from '../../../src/index.ts'
import { shardedDriver } from '../../../src/shards/index.ts'
import { inTime } from '../../support/in-time.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { type Name, names, scopeIn, shardsFixture } from '../../support/shards-fixture.ts'
import { wiredPool } from '../../support/wired-pool.ts'

/**
 * Every public operation, once: it goes to the primary of its scope and to no other, and what it sends
 * first there carries the check. An operation that is new and not in the table fails the test.
 */
const fixture = shardsFixture(
  'CREATE TABLE doc (id int PRIMARY KEY, version int NOT NULL DEFAULT 1, body text); INSERT INTO doc VALUES (1)',
)

interface Sent {
  readonly to: Name
  readonly text: string
}

/** What was sent, the first statement of each transaction only. */
function recorded(
  to: Name,
  driver: SessionDriver<pg.PoolClient>,
  sent: Sent[],
): SessionDriver<pg.PoolClient> {
  const noted = (text: string): void => {
    if (!text.includes('.read_shards(')) sent.push({ to, text })
  }
  const alone: Executor = {
    query: (statement) => {
      noted(statement.text)
      return driver.alone.query(statement)
    },
  }
  return {
    ...driver,
    alone,
    transaction: (body, settings) => {
      noted(settings.opening?.()?.text ?? 'BEGIN without a check')
      return driver.transaction(body, settings)
    },
  }
}

const sent: Sent[] = []
type Call = (scope: string) => unknown

/** Calls by room, and what they are asked of: one scope, or every primary. */
function operations(drivers = fixture.drivers): Record<'scope' | 'each', Record<string, Call>> & {
  readonly rooms: Record<string, object>
} {
  const hf = createHoldfast(
    shardedDriver({
      north: recorded('north', drivers.north, sent),
      south: recorded('south', drivers.south, sent),
    }),
  )
  const quota = hf.quota({ name: 'quota', limit: 1_000, per: 'lifetime' })
  const credits = hf.credits({ name: 'credits', prices: { feature: 1 } })
  const stockOf = (scope: string): ReturnType<typeof hf.stock> => hf.stock({ name: 'stock', scope })
  const work = hf.work<number>({ queue: 'queue' })
  const scheduleOf = (name: string): ReturnType<typeof hf.schedule> =>
    hf.schedule({
      name,
      every: '7 days',
      guarantee: 'at-least-once',
      handler: () => Promise.resolve(),
    })
  const id = (): { readonly operationId: string } => ({ operationId: fresh() })
  const external = (): { readonly externalId: string } => ({ externalId: fresh() })
  const ttl = '1 min'
  const held = async (scope: string): Promise<string> =>
    ((await quota.hold(scope, 1, { ...id(), ttl })) as { holdId: string }).holdId
  const heldCredit = async (scope: string): Promise<string> => {
    await credits.grant(scope, 5, { ...id(), priority: 1 })
    return ((await credits.hold(scope, 1, { ...id(), ttl })) as { holdId: string }).holdId
  }
  const lamps = [{ sku: 'lamp', quantity: 1 }]
  const reserved = async (scope: string): Promise<string> => {
    await stockOf(scope).receive(lamps, external())
    const verdict = await stockOf(scope).reserve(lamps, { ...external(), ttl })
    return (verdict as { holdId: string }).holdId
  }
  const key = (scope: string): ReturnType<typeof lockKey> => inScope(lockKey('lock', scope), scope)
  const inTx = async (
    scope: string,
    body: (tx: pg.PoolClient) => Promise<unknown>,
  ): Promise<void> => await hf.transaction(async (tx) => void (await body(tx)), { scopes: [scope] })
  /** A claim of a queue of its own, and what can be done about it. */
  const claimed = async (
    scope: string,
    end: (queue: typeof work, claims: Awaited<ReturnType<typeof work.claim>>) => Promise<unknown>,
  ): Promise<void> => {
    const queue = hf.work<number>({ queue: scope })
    await queue.enqueue({ payload: 1, scope })
    const claims = await queue.claim(1)
    sent.length = 0
    await end(queue, claims)
  }
  return {
    rooms: {
      quota,
      credits,
      stock: stockOf('x'),
      ledger: hf.ledger,
      locks: hf.locks,
      rows: hf.rows,
      leases: hf.leases,
      schedule: scheduleOf('x'),
      work,
    },
    scope: {
      'quota.consume': (scope) => quota.consume(scope, 1, id()),
      'quota.hold': held,
      'quota.settle': async (scope) => await quota.settle(await held(scope), 1),
      'quota.release': async (scope) => await quota.release(await held(scope)),
      'quota.extend': async (scope) => await quota.extend(await held(scope), ttl),
      'quota.refund': async (scope) => {
        const operation = id()
        await quota.consume(scope, 1, operation)
        await quota.refund(scope, 1, { ...id(), of: operation.operationId })
      },
      'quota.withHold': (scope) =>
        quota.withHold(scope, { estimate: 1, ttl, ...id() }, async (hold) => await hold.settle(1)),
      'quota.line': (scope) => quota.line(scope, 1),
      'quota.peek': (scope) => quota.peek(scope),
      'quota.setLimit': (scope) => quota.setLimit(scope, 5, id()),
      'quota.adjust': (scope) => quota.adjust(scope, 1, { ...id(), reason: 'test' }),
      'quota.open': (scope) => quota.open([{ key: scope, used: 1 }], id()),
      'credits.grant': (scope) => credits.grant(scope, 5, { ...id(), priority: 1 }),
      'credits.spend': (scope) => credits.spend(scope, 1, id()),
      'credits.hold': heldCredit,
      'credits.settle': async (scope) => await credits.settle(await heldCredit(scope)),
      'credits.release': async (scope) => await credits.release(await heldCredit(scope)),
      'credits.extend': async (scope) => await credits.extend(await heldCredit(scope), ttl),
      'credits.refund': (scope) => credits.refund(scope, 1, { ...id(), of: fresh() }),
      'credits.voidGrant': (scope) => credits.voidGrant(scope, fresh(), id()),
      'credits.grants': (scope) => credits.grants(scope),
      'credits.balance': (scope) => credits.balance(scope),
      'credits.charge': (scope) => credits.charge(scope, 'feature', id()),
      'credits.renew': (scope) => credits.renew(scope, { amount: 1, per: 'day' }),
      'credits.withHold': async (scope) => {
        await credits.grant(scope, 5, { ...id(), priority: 1 })
        await credits.withHold(scope, { estimate: 1, ttl, ...id() }, () => Promise.resolve())
      },
      'credits.line': (scope) => credits.line(scope, 1),
      'stock.receive': (scope) => stockOf(scope).receive(lamps, external()),
      'stock.issue': (scope) => stockOf(scope).issue(lamps, external()),
      'stock.return': (scope) => stockOf(scope).return(lamps, { ...external(), of: fresh() }),
      'stock.adjust': (scope) =>
        stockOf(scope).adjust([{ sku: 'lamp', quantity: 1 }], { ...external(), reason: 'test' }),
      'stock.reserve': reserved,
      'stock.transfer': (scope) =>
        stockOf(scope).transfer([{ sku: 'lamp', quantity: 1 }], {
          ...external(),
          from: 'a',
          to: 'b',
        }),
      'stock.settle': async (scope) => await stockOf(scope).settle(await reserved(scope)),
      'stock.release': async (scope) => await stockOf(scope).release(await reserved(scope)),
      'stock.extend': async (scope) => await stockOf(scope).extend(await reserved(scope), ttl),
      'stock.level': (scope) => stockOf(scope).level('lamp'),
      'stock.levels': (scope) =>
        hf.stock({ name: 'stock', scope, locations: ['a'] }).levels('lamp'),
      'stock.history': (scope) => stockOf(scope).history('lamp'),
      'stock.open': (scope) => stockOf(scope).open([{ sku: 'lamp', quantity: 1 }], id()),
      'stock.line': (scope) => stockOf(scope).line({ sku: 'lamp', quantity: 1 }),
      'ledger.apply': async (scope) =>
        await hf.ledger.apply([await quota.line(scope, 1)], { ...id(), scope }),
      'ledger.transfer': async (scope) =>
        hf.ledger.transfer(
          { from: [await quota.line(scope, 1)], to: [credits.grantLine(scope, 1)] },
          id(),
        ),
      'credits.grantLine': (scope) => Promise.resolve(credits.grantLine(scope, 1)),
      'stock.receiveLine': (scope) =>
        Promise.resolve(stockOf(scope).receiveLine({ sku: 'lamp', quantity: 1 })),
      'ledger.adjust': (scope) => hf.ledger.adjust('quota', scope, 1, { ...id(), reason: 'test' }),
      'ledger.open': (scope) => hf.ledger.open('quota', [{ key: scope, balance: 1 }], id()),
      'ledger.balance': (scope) => hf.ledger.balance('quota', scope),
      'ledger.balanceAt': (scope) => hf.ledger.balanceAt('quota', scope, new Date()),
      'ledger.history': (scope) => hf.ledger.history('quota', scope),
      'ledger.holds': (scope) => hf.ledger.holds('quota', scope),
      'locks.acquire': (scope) => inTx(scope, (tx) => hf.locks.acquire(tx, key(scope))),
      'locks.tryAcquire': (scope) => inTx(scope, (tx) => hf.locks.tryAcquire(tx, key(scope))),
      'locks.assertHeld': (scope) =>
        hf.guard(key(scope), (tx) => hf.locks.assertHeld(tx, key(scope))),
      'locks.guard': (scope) => hf.guard(key(scope), () => Promise.resolve()),
      'locks.tryGuard': (scope) => hf.tryGuard(key(scope), () => Promise.resolve()),
      'rows.lock': (scope) => inTx(scope, (tx) => hf.rows.lock(tx, 'doc', [1])),
      'rows.lockTable': (scope) => inTx(scope, (tx) => hf.rows.lockTable(tx, 'doc', 'share')),
      'rows.updateVersioned': (scope) =>
        inTx(scope, async (tx) => {
          const { rows } = await tx.query<{ version: number }>('SELECT version FROM doc')
          const version = rows[0]?.version as number
          await hf.rows.updateVersioned(tx, 'doc', 1, { version, set: { body: scope } })
        }),
      'rows.optimistic': (scope) =>
        hf.rows.optimistic(() => Promise.resolve(), { scopes: [scope] }),
      'rows.withVersionCheck': (scope) =>
        hf.rows.withVersionCheck('doc', 1, {
          work: () => Promise.resolve(1),
          write: () => Promise.resolve(),
          transaction: { scopes: [scope] },
        }),
      'leases.acquire': async (scope) => {
        const lease = await hf.leases.acquire('lease', { scope })
        await lease.renew()
        await lease.release()
      },
      'leases.tryAcquire': async (scope) => {
        const lease = await hf.leases.tryAcquire('lease', { scope })
        await lease?.release()
      },
      'leases.guard': async (scope) => {
        const lease = await hf.leases.acquire('lease', { scope })
        await inTx(scope, (tx) => hf.leases.guard(tx, { name: 'lease', token: lease.token, scope }))
        await lease.release()
      },
      'leases.read': (scope) => hf.leases.read('lease', { scope }),
      'schedule.fire': (scope) => scheduleOf(scope).fire(),
      'schedule.fireAt': (scope) => scheduleOf(scope).fireAt(0),
      'schedule.runNow': (scope) => scheduleOf(scope).runNow(),
      'schedule.pause': (scope) => scheduleOf(scope).pause(),
      'schedule.resume': (scope) => scheduleOf(scope).resume(),
      'schedule.history': (scope) => scheduleOf(scope).history(),
      'schedule.start': async (scope) => {
        await scheduleOf(scope).start().stop()
      },
      'work.enqueue': (scope) => work.enqueue({ payload: 1, scope }),
      'work.complete': (scope) => claimed(scope, (queue, claims) => queue.complete(claims)),
      'work.fail': (scope) => claimed(scope, (queue, claims) => queue.fail(claims)),
      'work.release': (scope) => claimed(scope, (queue, claims) => queue.release(claims)),
      'work.heartbeat': (scope) => claimed(scope, (queue, claims) => queue.heartbeat(claims)),
      once: (scope) => hf.once(scope, () => 1),
      transaction: (scope) => inTx(scope, () => Promise.resolve()),
    },
    each: {
      'ledger.sweep': () => hf.ledger.sweep(),
      'ledger.books': () => hf.ledger.books(),
      'ledger.keys': () => hf.ledger.keys('unknown'),
      'ledger.usage': () => hf.ledger.usage('unknown', { from: new Date(0), to: new Date() }),
      'ledger.follow': () => hf.ledger.follow({ name: fresh() }, async () => {}),
      'ledger.followers': () => hf.ledger.followers(),
      'ledger.unfollow': () => hf.ledger.unfollow('nobody'),
      'ledger.redeclare': () => hf.ledger.redeclare('anew', { as: 'credits' }),
      'leases.forget': () => hf.leases.forget({ idleFor: '1 h' }),
      'once.forget': () => hf.once.forget(),
      'work.claim': () => work.claim(100),
      'work.recover': () => work.recover(),
      'work.check': () => work.check(),
      'dead.list': () => work.dead.list(),
      'dead.get': () => work.dead.get(randomUUID()),
      'dead.retry': () => work.dead.retry(randomUUID()),
      'dead.delete': () => work.dead.delete(randomUUID()),
      'locks.selfTest': () => hf.locks.selfTest(),
    },
  }
}

/** Refused with SHARD_NO_KEY, started for good, or no call at all. */
const elsewhere = new Set([
  'ledger.audit',
  'ledger.maintain',
  'ledger.startSweeper',
  'ledger.startFollower',
  'work.run',
])

test('every operation is in the table', () => {
  const { rooms, scope, each } = operations()
  const public_ = Object.entries(rooms).flatMap(([room, value]) =>
    Object.entries(value)
      .filter(([, member]) => typeof member === 'function')
      .map(([name]) => `${room}.${name}`),
  )
  const known = new Set([...Object.keys(scope), ...Object.keys(each), ...elsewhere])
  expect(public_.filter((name) => !known.has(name))).toEqual([])
})

test('of one scope: to its primary alone, and checked there', async () => {
  const { scope: calls } = operations()
  const wrong: string[] = []
  for (const [at, [name, call]] of Object.entries(calls).entries()) {
    const place = names[at % 2] as Name
    const scope = scopeIn(place)
    expect(names[bucketOf(scope) % 2]).toBe(place)
    sent.length = 0
    await call(scope)
    for (const { to, text } of sent) {
      if (to !== place) wrong.push(`${name} asked the ${to}: ${text.slice(0, 80)}`)
      else if (!/\.(?:here|serves)\(/.test(text))
        wrong.push(`${name} was not checked: ${text.slice(0, 80)}`)
    }
    if (sent.length === 0 && !/line$/i.test(name)) wrong.push(`${name} sent nothing`)
  }
  expect(wrong).toEqual([])
})

test('of whole servers: to every primary', async () => {
  const { each } = operations()
  for (const [name, call] of Object.entries(each)) {
    sent.length = 0
    await call('')
    expect([name, ...new Set(sent.map(({ to }) => to))].toSorted()).toEqual(
      [name, ...names].toSorted(),
    )
  }
})

test.each(['silent', 'down'] as const)(
  'S2: of whole servers, with one that is %s: the others are asked all the same, and it is named',
  { timeout: 30_000 },
  async (how) => {
    const { wire, pool } = await wiredPool(fixture.urls.south, 40)
    const { each } = operations({ north: fixture.drivers.north, south: fromPg(pool) })
    // So that it is known where buckets are.
    await each['ledger.sweep']?.('')
    if (how === 'silent') wire.hold()
    else wire.refuse()
    sent.length = 0
    const began = performance.now()
    const told = await Promise.all(
      Object.entries(each).map(async ([name, call]) => {
        try {
          await call('')
          return [name, 'went well']
        } catch (error) {
          const { code, details } = error as HoldfastError
          return [name, code, (details['failures'] as PrimaryFailure[])?.map((one) => one.primary)]
        }
      }),
    )
    inTime(performance.now() - began, 15_000)
    for (const [name, ...rest] of told) {
      // What there is to be claimed is told, and nobody has to wait for the rest.
      const isFine = name === 'work.claim' && how === 'silent'
      expect([name, ...rest]).toEqual(
        isFine ? [name, 'went well'] : [name, 'SHARD_PRIMARY_FAILED', ['south']],
      )
    }
    const asked = sent.filter(({ to }) => to === 'north')
    expect(asked.length).toBeGreaterThanOrEqual(told.length)
  },
)
