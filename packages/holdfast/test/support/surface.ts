import { randomUUID as fresh } from 'node:crypto'
import type pg from 'pg'
import type { Claims, TransactionClaims, Work, Worker } from '../../src/entries/claims.ts'
import type { Credits } from '../../src/credits/index.ts'
import type { Leader, Lease, Leases } from '../../src/entries/leases.ts'
import type { Holds } from '../../src/ledger/holds.ts'
import type { Ledger } from '../../src/ledger/index.ts'
import type { Locks } from '../../src/entries/locks.ts'
import type { Once } from '../../src/entries/once.ts'
import type { Quota } from '../../src/quota/index.ts'
import type { RateLimit } from '../../src/rate-limit/index.ts'
import type { Rows } from '../../src/entries/rows.ts'
import type { Schedule } from '../../src/entries/schedule.ts'
import type { Stock } from '../../src/stock/index.ts'
import type { Transactions } from '../../src/tx/index.ts'
import { type Holdfast, lockKey } from '../../src/index.ts'
import { optionsFor } from './claims-table.ts'

/**
 * Every method of everything that a Holdfast hands out, what it is to `close`, and how it is called so that it
 * gets as far as the database. A path ends with `()` for what a method gives. `surfaceOf` finds what is there;
 * what is there and not here, or here and not there, is reported.
 */
export interface Entry {
  /**
   * `starts`: begins something, so that it is refused after `close` and waited for by it. `finishes`: ends or
   * goes on with what was taken before. `declares`: asks nothing of the database. `plain`: neither.
   */
  readonly kind: 'starts' | 'finishes' | 'declares' | 'plain'
  /** With a transaction of the caller's, which is open. */
  readonly call?: Call
  /** What it gives has methods of its own: ways to get it, by what its path is called. */
  readonly opens?: Readonly<Record<string, Call>>
}

type Tx = pg.PoolClient
type Call<T = never> = (on: T, tx: Tx) => unknown

/** Entries of one kind of thing. */
interface Of<T> {
  starts(call: Call<T>): Entry
  runs(call: Call<T>): Entry
  finishes(call: Call<T>): Entry
  declares(call: Call<T>, more?: Readonly<Record<string, Call<T>>>): Entry
}

function of<T>(): Of<T> {
  return {
    starts: (call) => ({ kind: 'starts', call }),
    runs: (call) => ({ kind: 'starts', call, opens: { '()': call } }),
    finishes: (call) => ({ kind: 'finishes', call }),
    declares: (call, more = {}) => ({ kind: 'declares', opens: { '()': call, ...more } }),
  }
}

const ofHoldfast = of<Holdfast<Tx>>()
const ofTx = of<Transactions<Tx>>()
const ofLocks = of<Locks<Tx>>()
const ofObserve = of<Holdfast<Tx>['observe']>()
const ofRows = of<Rows<Tx>>()
const ofLedger = of<Ledger<Tx>>()
const ofLeases = of<Leases<Tx>>()
const ofLease = of<Lease<Tx>>()
const ofLeader = of<Leader<Tx>>()
const ofSchedule = of<Schedule>()
const ofHolds = of<Holds<Tx, number>>()
const ofBook = of<Pick<Quota<Tx, number>, 'hold' | 'refund' | 'withHold'>>()
const ofQuota = of<Quota<Tx, number>>()
const ofRateLimit = of<RateLimit<Tx>>()
const ofCredits = of<Credits<Tx, number>>()
const ofStock = of<Stock<Tx, number>>()
const ofClaims = of<Claims<Tx, object>>()
const ofDead = of<Claims<Tx, object>['dead']>()
const ofTaking = of<TransactionClaims<Tx, object>>()
const ofWork = of<Work<Tx, number>>()
const ofWorker = of<Worker>()
const ofRunning = of<{ stop(): Promise<unknown> } & AsyncDisposable>()

const plain: Entry = { kind: 'plain' }

const done = (): Promise<void> => Promise.resolve()
const operation = (): { operationId: string } => ({ operationId: fresh() })
const external = (): { externalId: string } => ({ externalId: fresh() })
const order = [{ sku: 'sku', quantity: 1 }]
const holdId = '00000000-0000-8000-8000-000000000001'
const claim = { key: ['1', fresh()], token: fresh(), row: {}, attempt: 1, deadline: Infinity }

const taking = {
  table: 'job',
  columns: { status: 'state' },
  values: { pending: 'new', done: 'ok' },
}

const holds = {
  settle: ofHolds.finishes((on) => on.settle(holdId)),
  release: ofHolds.finishes((on) => on.release(holdId)),
  extend: ofHolds.finishes((on) => on.extend(holdId, '1 min')),
  line: plain,
}
const book = {
  ...holds,
  hold: ofBook.starts((on) => on.hold('key', 1, { ttl: '1 min', ...operation() })),
  refund: ofBook.starts((on) => on.refund('key', 1, { of: 'some', ...operation() })),
  withHold: ofBook.starts((on) =>
    on.withHold('key', { estimate: 1, ttl: '1 min', ...operation() }, done),
  ),
}
const claims = {
  claim: ofClaims.starts((on) => on.claim(1)),
  heartbeat: ofClaims.finishes((on) => on.heartbeat(claim)),
  complete: ofClaims.finishes((on) => on.complete(claim)),
  fail: ofClaims.finishes((on) => on.fail(claim)),
  release: ofClaims.finishes((on) => on.release(claim)),
  recover: ofClaims.starts((on) => on.recover()),
  run: ofClaims.runs((on) => on.run({ handler: done })),
  'run().stop': ofWorker.finishes((on) => on.stop()),
  'run().drain': ofWorker.finishes((on) => on.drain()),
  'run().wake': plain,
  'run().dispose': ofWorker.finishes((on) => on[Symbol.asyncDispose]()),
  check: ofClaims.starts((on) => on.check()),
  'dead.list': ofDead.starts((on) => on.list()),
  'dead.get': ofDead.starts((on) => on.get(fresh())),
  'dead.retry': ofDead.starts((on) => on.retry(fresh())),
  'dead.delete': ofDead.starts((on) => on.delete(fresh())),
}
const lease = {
  guard: ofLease.starts((on, tx) => on.guard(tx)),
  renew: ofLease.starts((on) => on.renew()),
  release: ofLease.finishes((on) => on.release()),
  dispose: ofLease.finishes((on) => on[Symbol.asyncDispose]()),
  remainingMs: plain,
}

export const surface: Readonly<Record<string, Entry>> = {
  guard: ofHoldfast.starts((on) => on.guard(lockKey('surface', 'guard'), done)),
  tryGuard: ofHoldfast.starts((on) => on.tryGuard(lockKey('surface', 'try'), done)),
  transaction: ofHoldfast.starts((on) => on.transaction(done)),
  close: plain,
  ...under('tx', { run: ofTx.starts((on) => on.run(done)) }),
  ...under('locks', {
    acquire: ofLocks.starts((on, tx) => on.acquire(tx, lockKey('surface', 'acquire'))),
    tryAcquire: ofLocks.starts((on, tx) => on.tryAcquire(tx, lockKey('surface', 'try'))),
    assertHeld: ofLocks.starts((on, tx) => on.assertHeld(tx, lockKey('surface', 'held'))),
    guard: ofLocks.starts((on) => on.guard(lockKey('surface', 'guard'), done)),
    tryGuard: ofLocks.starts((on) => on.tryGuard(lockKey('surface', 'try'), done)),
    selfTest: ofLocks.starts((on) => on.selfTest()),
  }),
  ...under('observe', {
    locks: ofObserve.starts((on) => on.locks()),
    session: ofObserve.starts((on) => on.session(1)),
    hotKeys: ofObserve.starts((on) => on.hotKeys()),
    names: ofObserve.starts((on) => on.names()),
    lockMinutes: ofObserve.starts((on) => on.lockMinutes()),
    transactions: ofObserve.starts((on) => on.transactions()),
    books: ofObserve.starts((on) => on.books()),
    account: ofObserve.starts((on) => on.account({ book: 'book', key: 'key' })),
    keys: ofObserve.starts((on) => on.keys('book')),
    usage: ofObserve.starts((on) => on.usage({ book: 'book', key: 'key' })),
    followers: ofObserve.starts((on) => on.followers()),
    holds: ofObserve.starts((on) => on.holds()),
    leases: ofObserve.starts((on) => on.leases()),
    schedules: ofObserve.starts((on) => on.schedules()),
    claims: ofObserve.starts((on) => on.claims()),
    queues: plain,
    record: ofObserve.runs((on) => on.record()),
    'record().stop': ofRunning.finishes((on) => on.stop()),
    'record().dispose': ofRunning.finishes((on) => on[Symbol.asyncDispose]()),
  }),
  ...under('rows', {
    lock: ofRows.starts((on, tx) => on.lock(tx, 'work', [1], { keyColumns: ['id'] })),
    lockTable: ofRows.starts((on, tx) => on.lockTable(tx, 'work', 'share')),
    updateVersioned: ofRows.starts((on, tx) =>
      on.updateVersioned(tx, 'work', 1, { version: 1, set: {} }),
    ),
    optimistic: ofRows.starts((on) => on.optimistic(done)),
    withVersionCheck: ofRows.starts((on) =>
      on.withVersionCheck('work', 1, { work: done, write: done }),
    ),
  }),
  ...under('ledger', {
    balance: ofLedger.starts((on) => on.balance('book', 'key')),
    balanceAt: ofLedger.starts((on) => on.balanceAt('book', 'key', new Date())),
    history: ofLedger.starts((on) => on.history('book', 'key')),
    holds: ofLedger.starts((on) => on.holds('book', 'key')),
    sweep: ofLedger.starts((on) => on.sweep()),
    keys: ofLedger.starts((on) => on.keys('book')),
    usage: ofLedger.starts((on) => on.usage('book', { from: new Date(0), to: new Date() })),
    follow: ofLedger.starts((on) => on.follow({ name: 'surface' }, done)),
    startFollower: ofLedger.runs((on) => on.startFollower({ name: 'surface', every: 1 }, done)),
    'startFollower().stop': ofRunning.finishes((on) => on.stop()),
    followers: ofLedger.starts((on) => on.followers()),
    unfollow: ofLedger.starts((on) => on.unfollow('nobody')),
    startSweeper: ofLedger.runs((on) => on.startSweeper({ every: 1 })),
    'startSweeper().stop': ofRunning.finishes((on) => on.stop()),
    audit: ofLedger.starts((on) => on.audit()),
    maintain: ofLedger.starts((on) => on.maintain()),
    adjust: ofLedger.starts((on) => on.adjust('book', 'key', 1, { reason: 'why', ...operation() })),
    open: ofLedger.starts((on) => on.open('book', [{ key: 'key', balance: 1 }], operation())),
    books: ofLedger.starts((on) => on.books()),
    redeclare: ofLedger.starts((on) => on.redeclare('anew', { as: 'credits' })),
    transfer: ofLedger.starts((on) =>
      on.transfer(
        {
          from: [{ line: { kind: 2, book: 'book', key: 'key', amount: '1' } }],
          to: [{ line: { kind: 1, book: 'book', key: 'other', amount: '1' } }],
        },
        { ...operation(), scope: 'key', acrossScopes: true },
      ),
    ),
    apply: ofLedger.starts((on) =>
      on.apply([{ line: { kind: 1, book: 'book', key: 'key', amount: '1' } }], operation()),
    ),
  }),
  ...under('leases', {
    acquire: ofLeases.runs((on) => on.acquire(fresh())),
    ...under('acquire()', lease),
    tryAcquire: ofLeases.runs((on) => on.tryAcquire(fresh())),
    ...under('tryAcquire()', lease),
    guard: ofLeases.starts((on, tx) => on.guard(tx, { name: 'name', token: 1n })),
    read: ofLeases.starts((on) => on.read('name')),
    forget: ofLeases.starts((on) => on.forget({ idleFor: '1 day' })),
  }),
  leader: ofHoldfast.declares((on) => on.leader({ name: fresh() })),
  ...under('leader()', { run: ofLeader.starts((on) => on.run(done)) }),
  schedule: ofHoldfast.declares((on) =>
    on.schedule({ name: fresh(), every: '1 h', guarantee: 'at-least-once', handler: done }),
  ),
  ...under('schedule()', {
    start: ofSchedule.runs((on) => on.start()),
    'start().stop': ofRunning.finishes((on) => on.stop()),
    fire: ofSchedule.starts((on) => on.fire()),
    fireAt: ofSchedule.starts((on) => on.fireAt(new Date())),
    runNow: ofSchedule.starts((on) => on.runNow()),
    pause: ofSchedule.starts((on) => on.pause()),
    resume: ofSchedule.starts((on) => on.resume()),
    history: ofSchedule.starts((on) => on.history()),
  }),
  once: ofHoldfast.starts((on) => on.once(fresh(), done)),
  'once.forget': of<Once<Tx>>().starts((on) => on.forget()),
  quota: ofHoldfast.declares((on) => on.quota({ name: fresh(), limit: 10, per: 'day' })),
  ...under('quota()', {
    ...book,
    consume: ofQuota.starts((on) => on.consume('key', 1, operation())),
    peek: ofQuota.starts((on) => on.peek('key')),
    setLimit: ofQuota.starts((on) => on.setLimit('key', 5, operation())),
    adjust: ofQuota.starts((on) => on.adjust('key', 1, { reason: 'why', ...operation() })),
    open: ofQuota.starts((on) => on.open([{ key: 'key', used: 1 }], operation())),
  }),
  rateLimit: ofHoldfast.declares((on) => on.rateLimit({ name: fresh(), limit: 9, per: 'day' })),
  ...under('rateLimit()', {
    consume: ofRateLimit.starts((on) => on.consume('key', 1, {})),
    peek: ofRateLimit.starts((on) => on.peek('key')),
    reset: ofRateLimit.starts((on) => on.reset('key')),
    forget: ofRateLimit.starts((on) => on.forget()),
  }),
  credits: ofHoldfast.declares((on) => on.credits({ name: fresh(), prices: { feature: 1 } })),
  ...under('credits()', {
    ...book,
    grant: ofCredits.starts((on) => on.grant('key', 1, operation())),
    spend: ofCredits.starts((on) => on.spend('key', 1, operation())),
    charge: ofCredits.starts((on) => on.charge('key', 'feature' as never, operation())),
    renew: ofCredits.starts((on) => on.renew('key', { amount: 1, per: 'day' })),
    balance: ofCredits.starts((on) => on.balance('key')),
    grantLine: plain,
    voidGrant: ofCredits.starts((on) => on.voidGrant('key', 'some', operation())),
    grants: ofCredits.starts((on) => on.grants('key')),
  }),
  stock: ofHoldfast.declares((on) => on.stock({ name: fresh() })),
  ...under('stock()', {
    ...holds,
    receive: ofStock.starts((on) => on.receive(order, external())),
    issue: ofStock.starts((on) => on.issue(order, external())),
    return: ofStock.starts((on) => on.return(order, external())),
    adjust: ofStock.starts((on) => on.adjust(order, { reason: 'why', ...external() })),
    reserve: ofStock.starts((on) => on.reserve(order, { ttl: '1 min', ...external() })),
    transfer: ofStock.starts((on) =>
      on.transfer(order, { from: 'here', to: 'there', ...external() }),
    ),
    level: ofStock.starts((on) => on.level('sku')),
    receiveLine: plain,
    levels: ofStock.starts((on) => on.levels('sku')),
    history: ofStock.starts((on) => on.history('sku')),
    open: ofStock.starts((on) => on.open(order, operation())),
  }),
  claims: ofHoldfast.declares((on) => on.claims(optionsFor('job')), {
    '(transaction)': (on) => on.claims({ ...taking, mode: 'transaction' }),
  }),
  ...under('claims()', claims),
  ...under('claims(transaction)', {
    take: ofTaking.starts((on, tx) => on.take(tx)),
    finish: ofTaking.finishes((on, tx) => on.finish(tx, { row: {}, key: ['1'] })),
  }),
  work: ofHoldfast.declares((on) => on.work({ queue: fresh() })),
  ...under('work()', { ...claims, enqueue: ofWork.starts((on) => on.enqueue({ payload: 1 })) }),
}

function under(path: string, entries: Readonly<Record<string, Entry>>): Record<string, Entry> {
  return Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => [`${path}.${name}`, entry]),
  )
}

/** A method, on what it was found. */
export interface Found {
  readonly path: string
  readonly on: object
  readonly method: (...args: unknown[]) => unknown
}

/** Walks over everything that is handed out, calling what gives something with methods of its own. */
export async function surfaceOf(hf: Holdfast<Tx>, tx: Tx): Promise<Found[]> {
  const found: Found[] = []
  const walk = async (path: string, thing: object): Promise<void> => {
    for (const [name, value] of membersOf(thing)) {
      const at = path === '' ? name : `${path}.${name}`
      if (typeof value === 'function') {
        found.push({ path: at, on: thing, method: value as Found['method'] })
        for (const [way, open] of Object.entries(surface[at]?.opens ?? {}))
          await walk(`${at}${way}`, (await open(thing as never, tx)) as object)
      }
      if (isWalked(value)) await walk(at, value)
    }
  }
  await walk('', hf)
  return found
}

/** A function may have methods too: `once` does. */
function isWalked(value: unknown): value is object {
  if (value instanceof AbortSignal) return false
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}

export function hasMethods(value: unknown): boolean {
  return isWalked(value) && membersOf(value).some(([, member]) => typeof member === 'function')
}

function membersOf(thing: object): [name: string, value: unknown][] {
  const prototype = Object.getPrototypeOf(thing) as object
  const ours = typeof thing === 'function' || isBuiltIn(prototype) ? [thing] : [thing, prototype]
  const names = new Map<string, unknown>()
  for (const holder of ours) {
    for (const key of Reflect.ownKeys(holder)) {
      const { enumerable, value, get } = Object.getOwnPropertyDescriptor(
        holder,
        key,
      ) as PropertyDescriptor
      if (key === 'constructor' || get !== undefined) continue
      if (enumerable !== true && holder === thing) continue
      const name = key === Symbol.asyncDispose ? 'dispose' : String(key)
      if (!names.has(name)) names.set(name, value)
    }
  }
  return [...names]
}

function isBuiltIn(prototype: object | null): boolean {
  return (
    prototype === null ||
    [Object, Array, Date, Map, Set].some((made) => made.prototype === prototype)
  )
}

/** What the method of this path is called on. */
export async function ownerOf(path: string, hf: Holdfast<Tx>, tx: Tx): Promise<unknown> {
  let on: unknown = hf
  let at = ''
  for (const name of path.split('.').slice(0, -1)) {
    const [method = '', way] = name.split(/(?=\()/)
    const open = way && surface[`${at}${method}`]?.opens?.[way]
    on = open ? await open(on as never, tx) : (on as Record<string, unknown>)[method]
    at = `${at}${name}.`
  }
  return on
}

/** How the surface calls a method: its name and its arguments. */
export function callOf(path: string, tx: Tx): { method?: PropertyKey; right: unknown[] } {
  const { call, opens } = surface[path] ?? {}
  const make = call ?? opens?.['()']
  let seen: { method?: PropertyKey; right: unknown[] } = { right: [] }
  const noting = new Proxy(
    {},
    {
      get:
        (_, method) =>
        (...right: unknown[]) => {
          seen = { method, right }
        },
    },
  )
  make?.(noting as never, tx)
  return seen
}

/** What a call has begun is not to go on. */
export async function ended(given: unknown): Promise<void> {
  const { stop, release } = (given ?? {}) as Partial<Record<'stop' | 'release', () => unknown>>
  if (typeof stop === 'function') await stop.call(given)
  else if (typeof release === 'function' && 'signal' in (given as object)) await release.call(given)
}
