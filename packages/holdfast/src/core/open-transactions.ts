import { AsyncLocalStorage } from 'node:async_hooks'
import type { Driver } from './driver.ts'
import { holdfastError } from './errors.ts'
import { channels } from './events.ts'
import { processWide } from './process-wide.ts'

/** A transaction of ours, for as long as its body may run. */
export interface OpenTransaction {
  readonly driver: Pick<Driver<never>, 'name' | 'root'>
  readonly outer: OpenTransaction | undefined
  open: boolean
}

/** Which transactions the running code is inside of. */
export const openTransactions: AsyncLocalStorage<OpenTransaction | undefined> =
  /* @__PURE__ */ processWide('open-transactions/1', () => new AsyncLocalStorage())

/** Throws if the running code is inside a transaction that this driver opened: a second one could hang. */
export function assertNotNested(driver: object): void {
  for (let at = openTransactions.getStore(); at !== undefined; at = at.outer) {
    if (at.open && at.driver === driver) throw holdfastError('TX_NESTED')
  }
}

/** Runs something of ours that may use the root client, wherever it is called from. */
export function asOurs<T>(run: () => T): T {
  if (openTransactions.getStore() === undefined) return run()
  return openTransactions.run(undefined, run)
}

/** What is done about a body that uses the root client. */
export type RootClient = (typeof rootClients)[number]

const rootClients = ['throw', 'report', 'allow'] as const

const chosen = /* @__PURE__ */ processWide(
  'root-clients/1',
  () => new WeakMap<object, RootClient>(),
)

/** Sets what is done about it for the root client of a driver, which may have none yet. */
export function chooseRootClient(driver: Pick<Driver<never>, 'root'>, choice: RootClient): void {
  if (!rootClients.includes(choice)) {
    const subject = `tx.rootClient must be ${rootClients.map((each) => `'${each}'`).join(', ')}`
    throw holdfastError('OPTION_INVALID', { details: { option: 'tx.rootClient', subject } })
  }
  chosen.set(driver, choice)
  const pool = driver.root?.()
  if (pool !== undefined) chosen.set(pool, choice)
}

/**
 * Somebody takes a connection of this root client. Inside a body of a transaction on it that is nearly
 * always a mistake: the wrong handle was used.
 *
 * @throws TX_ROOT_CLIENT, where the choice is to throw; in development it is
 */
export function noteRootUse(root: object): void {
  let at = openTransactions.getStore()
  while (at !== undefined && !(at.open && at.driver.root?.() === root)) at = at.outer
  if (at === undefined) return
  const choice =
    chosen.get(at.driver) ??
    chosen.get(root) ??
    (process.env['NODE_ENV'] === 'development' ? 'throw' : 'report')
  if (choice === 'allow') return
  if (choice === 'report' && !channels.txRootClient.hasSubscribers) return
  const error = holdfastError('TX_ROOT_CLIENT', { details: { client: at.driver.name } })
  if (channels.txRootClient.hasSubscribers) {
    channels.txRootClient.publish({ client: at.driver.name, thrown: choice === 'throw', error })
  }
  if (choice === 'throw') throw error
}
