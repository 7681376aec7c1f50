import { type CallSite, callersOf } from './call-site.ts'
import { holdfastError } from '../errors.ts'
import type { LockOrderEvent } from '../events/event-map.ts'
import { channels, publish } from '../events.ts'
import { OrderGraph, type OrderLock, type OrderStep } from './order-graph.ts'
import { Recent } from '../recent.ts'
import { processWide } from '../process-wide.ts'

/** Who takes locks, for whoever is told about them. */
export type OrderSubject = Pick<LockOrderEvent, 'locks' | 'pid'>

/** What a transaction held and what it was granted in one call, less what it had already. */
export interface OrderSeen {
  readonly held: readonly OrderLock[]
  readonly taken: readonly OrderLock[]
  /** What it held shared and now asked for exclusively: two that do so wait for each other. */
  readonly upgraded: readonly string[]
}

/** How many numbers of legacy keys, and how many tables, are remembered. */
const mostRemembered = 10_000

/**
 * Learns in which order the transactions of a driver take their locks, and tells when two orders that were
 * seen can deadlock, whether or not they met. Once for each pair of what is locked.
 */
export class OrderWatch {
  /** Throw where an order can deadlock; else it is only an event. */
  strict = false
  /** Keys whose number only the server knows, by that number. */
  readonly hashed: Recent<bigint, string> = new Recent(mostRemembered)
  /** Tables whose rows were locked, by their tokens in the marker. */
  readonly tables: Recent<string, string> = new Recent(mostRemembered)
  readonly #graph = new OrderGraph()
  readonly #upgrades = new Map<string, readonly OrderStep[]>()

  saw({ held, taken, upgraded }: OrderSeen, site: CallSite, subject: () => OrderSubject): void {
    let line: string | undefined
    const place = (): string => (line ??= callersOf(site).trim().replace(/^at /, ''))
    for (const node of upgraded) this.#upgrade(node, place, subject)
    const cycle = this.#graph.learn(held, taken, place)
    if (cycle === undefined) return
    const { steps } = cycle
    const rows = steps.some(({ before }) => before.startsWith(rowsPrefix))
    this.#tell(rows ? 'rows-first' : 'out-of-order', steps, cycle.fresh, subject)
  }

  #upgrade(node: string, place: () => string, subject: () => OrderSubject): void {
    const known = this.#upgrades.get(node)
    if (known === undefined && this.#upgrades.size >= mostRemembered) return
    const steps = known ?? [{ before: node, after: node, together: false, at: place() }]
    this.#upgrades.set(node, steps)
    this.#tell('upgrade', steps, known === undefined, subject)
  }

  #tell(
    fault: LockOrderEvent['fault'],
    cycle: readonly OrderStep[],
    fresh: boolean,
    subject: () => OrderSubject,
  ): void {
    if (!fresh && !this.strict) return
    const { locks, pid } = subject()
    const details = {
      subject: cycle.map(sentence).join('; '),
      fault,
      cycle,
      names: locks.map(({ key }) => key.name),
    }
    if (fresh) publish(channels.lockOrder, { ...details, pid, locks })
    if (!this.strict) return
    throw holdfastError('LOCK_ORDER', {
      details: pid === undefined ? details : { ...details, pid },
    })
  }
}

/** How a table's rows are called among namespaces. */
export const rowsPrefix = 'rows of '

function sentence({ before, after, together, at }: OrderStep): string {
  const what = before === after ? (together ? `several ${before}` : `${before} twice`) : undefined
  const how = together ? `${before} and ${after} in one call` : `${before}, then ${after}`
  return `${what ?? how}, at ${at}`
}

const watches = /* @__PURE__ */ processWide(
  'order-watches/1',
  () => new WeakMap<object, OrderWatch>(),
)

/** The watch of a driver; all rooms over it share it. */
export function orderWatchOf(driver: object): OrderWatch {
  let watch = watches.get(driver)
  if (watch === undefined) watches.set(driver, (watch = new OrderWatch()))
  return watch
}
