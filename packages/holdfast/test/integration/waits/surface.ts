/** Every method that users can call, and what it may wait for. A method that is not in the table fails the test. */
import type { Holdfast } from '../../../src/index.ts'

/**
 * - `grid`: for somebody else's lock or turn; has a row in the grid
 * - `connection`: for a connection, and for nobody else
 * - `server`: for a row that somebody else changes, as long as lock_timeout and statement_timeout of the server allow;
 *   it has no limit of its own yet
 * - `never`: for nothing, or by design until it is stopped
 */
export type Kind = 'grid' | 'connection' | 'server' | 'never'

export const kinds: Readonly<Record<string, Kind>> = {
  'tx.run': 'grid',
  transaction: 'grid',
  'locks.acquire': 'grid',
  'locks.tryAcquire': 'never',
  'locks.assertHeld': 'never',
  'locks.guard': 'grid',
  guard: 'grid',
  'locks.tryGuard': 'connection',
  tryGuard: 'connection',
  'locks.selfTest': 'connection',
  'rows.lock': 'grid',
  'rows.lockTable': 'grid',
  'rows.updateVersioned': 'grid',
  'rows.optimistic': 'grid',
  'rows.withVersionCheck': 'grid',
  once: 'grid',
  'once.forget': 'connection',
  'leases.acquire': 'grid',
  'leases.tryAcquire': 'connection',
  'leases.guard': 'server',
  'leases.read': 'connection',
  'leases.forget': 'connection',
  'lease.guard': 'server',
  'lease.renew': 'server',
  'lease.release': 'server',
  'lease.remainingMs': 'never',
  // Until its signal says stop.
  'leader.run': 'never',
  leader: 'never',
  schedule: 'never',
  'schedule.start': 'never',
  'schedule.fire': 'grid',
  'schedule.fireAt': 'grid',
  'schedule.runNow': 'grid',
  'schedule.pause': 'grid',
  'schedule.resume': 'grid',
  'schedule.history': 'connection',
  quota: 'never',
  rateLimit: 'never',
  credits: 'never',
  stock: 'never',
  claims: 'never',
  work: 'never',
  // As long as it is given.
  close: 'never',
  'observe.record': 'connection',
  // It is about this process.
  'observe.queues': 'never',
  ...each(
    'observe',
    'connection',
    'locks session hotKeys names lockMinutes transactions books account keys usage followers holds leases schedules claims',
  ),
  ...each(
    'ledger',
    'connection',
    'balance balanceAt history holds audit books keys usage followers',
  ),
  ...each(
    'ledger',
    'server',
    'sweep maintain adjust open apply transfer redeclare follow unfollow',
  ),
  'ledger.startSweeper': 'never',
  'ledger.startFollower': 'never',
  'credits.grantLine': 'never',
  'stock.receiveLine': 'never',
  ...each(
    'quota',
    'server',
    'settle release extend setLimit adjust open consume hold refund withHold',
  ),
  'quota.peek': 'connection',
  'quota.line': 'never',
  ...each('rateLimit', 'server', 'consume reset'),
  ...each('rateLimit', 'connection', 'peek forget'),
  ...each(
    'credits',
    'server',
    'settle release extend grant spend charge renew hold refund voidGrant withHold grants balance',
  ),
  'credits.line': 'never',
  ...each(
    'stock',
    'server',
    'receive issue return adjust reserve transfer settle release extend open',
  ),
  ...each('stock', 'connection', 'level levels history'),
  'stock.line': 'never',
  ...each('claims', 'server', 'heartbeat complete fail release recover dead.retry dead.delete'),
  ...each('claims', 'connection', 'claim check run dead.list dead.get'),
  ...each('claims in a transaction', 'never', 'take finish'),
  ...each(
    'work',
    'server',
    'heartbeat complete fail release recover dead.retry dead.delete enqueue',
  ),
  ...each('work', 'connection', 'claim check run dead.list dead.get'),
}

function each(of: string, kind: Kind, methods: string): Record<string, Kind> {
  return Object.fromEntries(methods.split(' ').map((method) => [`${of}.${method}`, kind]))
}

/** The methods of an object and of what it holds, by name. */
function methodsOf(object: object, path = ''): string[] {
  return Object.entries(object).flatMap(([name, value]: [string, unknown]) => {
    const at = path === '' ? name : `${path}.${name}`
    if (typeof value === 'function') return [at, ...methodsOf(value, at)]
    if (typeof value !== 'object' || value === null || value instanceof AbortSignal) return []
    return methodsOf(value, at)
  })
}

/** Those of a Holdfast, and of everything that it gives. */
export function surfaceOf<Tx>(hf: Holdfast<Tx>, lease: object): string[] {
  const handler = (): undefined => undefined
  const given = {
    lease,
    leader: hf.leader({ name: 'l' }),
    schedule: hf.schedule({ name: 's', guarantee: 'transactional', handler }),
    quota: hf.quota({ name: 'q', limit: 1, per: 'day', timeZone: 'UTC' }),
    rateLimit: hf.rateLimit({ name: 'r', limit: 1, per: 'day' }),
    credits: hf.credits({ name: 'c' }),
    stock: hf.stock({ name: 's' }),
    claims: hf.claims({ table: 't', lease: '30 s' }),
    'claims in a transaction': hf.claims({ table: 't', mode: 'transaction' }),
    work: hf.work({ queue: 'w' }),
  }
  return [...methodsOf(hf), ...methodsOf(given)]
}

/** Methods that nobody has thought about. */
export function unclassified(methods: readonly string[]): string[] {
  return methods.filter((method) => !Object.hasOwn(kinds, method))
}
