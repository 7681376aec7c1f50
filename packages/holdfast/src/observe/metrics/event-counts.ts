import type {
  EventMap,
  LedgerBatchEvent,
  LockRequestedEvent,
  TxEvent,
} from '../../core/events/event-map.ts'
import { reasonOf } from '../../core/errors/reason-of.ts'
import { type Cell, type HistogramCell, LabelValues } from './metric-family.ts'
import { MetricSet } from './metric-set.ts'
import { on } from '../on.ts'

/** How labels are made of what users named. */
export interface CountOptions {
  readonly lockLabel: (key: LockRequestedEvent['locks'][number]['key']) => string
  readonly mostValues: number
}

/** The cells of one lock label, so that an acquisition is one look into a map and a few additions. */
interface LockCells {
  readonly acquired: Cell
  readonly timeout: Cell
  readonly busy: Cell
  readonly failed: Cell
  readonly wait: HistogramCell
  readonly hold: HistogramCell
}

/** The same of one room's transactions. */
interface RoomCells {
  readonly committed: Cell
  readonly rolledBack: Cell
  readonly unknown: Cell
  readonly duration: HistogramCell
  readonly open: HistogramCell
}

type Locks = LockRequestedEvent['locks']

/** Counts events. Labels that users make up are bounded, each on its own. */
export class EventCounts {
  readonly set: MetricSet = new MetricSet()
  readonly #options: CountOptions
  readonly #labels = new Map<string, LabelValues>()
  readonly #locks = new Map<string, LockCells>()
  readonly #rooms = new Map<string, RoomCells>()
  readonly #seen = new Map<string, Set<string>>()
  readonly #stops: (() => void)[] = []

  /** `prepare` is called before anything is counted. */
  constructor(options: CountOptions, prepare?: (set: MetricSet) => void) {
    this.#options = options
    const { set } = this
    prepare?.(set)
    this.#beginAtZero()
    this.#countLocks()
    this.#countRows()
    this.#countTransactions()
    this.#countLedger()
    this.#countClaims()
    this.#countLeases()
    this.#countRest()
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  /**
   * A counter whose first value is 1 has not increased, as far as Prometheus can tell: what is rare and
   * matters is there, as zero, before it happens.
   */
  #beginAtZero(): void {
    const { set } = this
    set.swept.at()
    for (const outcome of ['done', 'failed']) set.sweeps.at(outcome)
    for (const outcome of ['ran', 'replayed', 'mismatch', 'in-progress']) set.once.at(outcome)
    for (const reason of ['40001', '40P01']) set.retries.at(reason)
    for (const during of ['record', 'metrics']) set.observeTrouble.at(during)
  }

  /** True the first time a value is seen. */
  #isNew(what: string, value: string): boolean {
    const seen = this.#seen.get(what)
    if (seen === undefined) this.#seen.set(what, new Set([value]))
    else if (seen.has(value)) return false
    else seen.add(value)
    return true
  }

  #on<N extends keyof EventMap>(event: N, listener: (message: EventMap[N]) => void): void {
    this.#stops.push(on(event, listener))
  }

  #bounded(label: string, value: string): string {
    let values = this.#labels.get(label)
    if (values === undefined) {
      this.#labels.set(label, (values = new LabelValues(this.#options.mostValues)))
    }
    return values.bounded(value)
  }

  #cells(locks: Locks, at: number): LockCells {
    const key = (locks[at] as Locks[number]).key
    const label = this.#options.lockLabel(key)
    const known = this.#locks.get(label)
    if (known !== undefined) return known
    const bounded = this.#bounded('lock', label)
    const made = bounded === label ? undefined : this.#locks.get(bounded)
    if (made !== undefined) return made
    const { set } = this
    const cells: LockCells = {
      acquired: set.lockAcquisitions.at(bounded, 'acquired'),
      timeout: set.lockAcquisitions.at(bounded, 'timeout'),
      busy: set.lockAcquisitions.at(bounded, 'busy'),
      failed: set.lockAcquisitions.at(bounded, 'failed'),
      wait: set.lockWait.at(bounded),
      hold: set.lockHold.at(bounded),
    }
    for (const level of ['warning', 'error']) set.lockHeldLong.at(bounded, level)
    for (const fault of ['out-of-order', 'upgrade', 'rows-first']) set.lockOrder.at(bounded, fault)
    this.#locks.set(bounded, cells)
    return cells
  }

  #cellsOfRoom(room: string): RoomCells {
    const known = this.#rooms.get(room)
    if (known !== undefined) return known
    const { set } = this
    const cells: RoomCells = {
      committed: set.transactions.at(room, 'committed'),
      rolledBack: set.transactions.at(room, 'rolled_back'),
      unknown: set.transactions.at(room, 'unknown'),
      duration: set.transactionDuration.at(room),
      open: set.transactionOpen.at(room),
    }
    this.#rooms.set(room, cells)
    return cells
  }

  #countLocks(): void {
    const { set } = this
    this.#on('lock.acquired', ({ locks, waitMs }) => {
      for (let at = 0; at < locks.length; at += 1) {
        const cells = this.#cells(locks, at)
        cells.acquired.value += 1
        cells.wait.observe(waitMs)
      }
    })
    this.#on('lock.released', ({ locks, heldMs }) => {
      for (let at = 0; at < locks.length; at += 1) this.#cells(locks, at).hold.observe(heldMs)
    })
    this.#on('lock.timeout', ({ locks, waitMs }) => {
      for (let at = 0; at < locks.length; at += 1) {
        const cells = this.#cells(locks, at)
        cells.timeout.value += 1
        cells.wait.observe(waitMs)
      }
    })
    this.#on('lock.busy', ({ locks }) => {
      for (let at = 0; at < locks.length; at += 1) this.#cells(locks, at).busy.value += 1
    })
    this.#on('lock.failed', ({ locks }) => {
      for (let at = 0; at < locks.length; at += 1) this.#cells(locks, at).failed.value += 1
    })
    this.#on('lock.held-long', ({ locks, level }) => {
      for (const { key } of locks) {
        const label = this.#bounded('lock', this.#options.lockLabel(key))
        set.lockHeldLong.at(label, level).value += 1
      }
    })
    this.#on('lock.order', ({ locks, fault }) => {
      for (const { key } of locks) {
        const label = this.#bounded('lock', this.#options.lockLabel(key))
        set.lockOrder.at(label, fault).value += 1
      }
    })
  }

  #countRows(): void {
    const { set } = this
    const ended =
      (outcome: string) =>
      ({ table, waitMs }: { readonly table: string; readonly waitMs: number }): void => {
        const label = this.#bounded('table', table)
        if (this.#isNew('rows', label)) {
          for (const each of ['locked', 'timeout', 'busy']) set.rows.at(label, each)
        }
        set.rows.at(label, outcome).value += 1
        set.rowWait.at(label).observe(waitMs)
      }
    this.#on('rows.locked', ended('locked'))
    this.#on('rows.table-locked', ended('locked'))
    this.#on('rows.timeout', ended('timeout'))
    this.#on('rows.busy', ended('busy'))
    this.#on('rows.conflict', ({ table }) => {
      set.rowConflicts.at(this.#bounded('table', table)).value += 1
    })
  }

  #countTransactions(): void {
    const { set } = this
    const ended =
      (outcome: 'committed' | 'rolledBack' | 'unknown') =>
      ({ room, durationMs, openMs }: TxEvent): void => {
        const cells = this.#cellsOfRoom(room)
        cells[outcome].value += 1
        cells.duration.observe(durationMs)
        cells.open.observe(openMs)
      }
    this.#on('tx.committed', ended('committed'))
    this.#on('tx.rolled-back', ended('rolledBack'))
    this.#on('tx.unknown', ended('unknown'))
    this.#on('tx.retry', ({ reason }) => {
      set.retries.at(this.#bounded('reason', reason)).value += 1
    })
  }

  #countLedger(): void {
    const { set } = this
    const statements = set.ledgerStatementDuration.at()
    this.#on('ledger.batch', ({ durationMs, tallies }: LedgerBatchEvent) => {
      statements.observe(durationMs)
      for (const { book, kind, outcome, reason, count, buckets, sumMs } of tallies) {
        const label = this.#bounded('book', book)
        const why = reason === '' ? '' : this.#bounded('reason', reason)
        set.ledgerOperations.at(label, kind, outcome, why).value += count
        set.ledgerOperationDuration.at(label).add(buckets, sumMs, count)
      }
    })
    this.#on('ledger.sweep', ({ fallen, error }) => {
      set.sweeps.at(error === undefined ? 'done' : 'failed').value += 1
      set.swept.at().value += fallen
    })
    this.#on('ledger.audited', ({ found }) => {
      set.auditProblems.at().value = found
    })
    this.#on('quota.denied', ({ book }) => {
      set.quotaDenied.at(this.#bounded('book', book)).value += 1
    })
  }

  #countClaims(): void {
    const { set } = this
    const label = (table: string): string => {
      const bounded = this.#bounded('table', table)
      if (this.#isNew('claims', bounded)) {
        for (const family of [set.claimsDead, set.claimsLost, set.claimsRecovered])
          family.at(bounded)
        for (const verb of ['complete', 'fail', 'release']) set.claimsFinished.at(bounded, verb)
      }
      return bounded
    }
    this.#on('claims.claimed', ({ table, count }) => {
      set.claimed.at(label(table)).value += count
    })
    this.#on('claims.finished', ({ table, verb, kept, dead }) => {
      if (verb === 'heartbeat') return
      set.claimsFinished.at(label(table), verb).value += kept
      if (dead > 0) set.claimsDead.at(label(table)).value += dead
    })
    this.#on('claims.lost', ({ table, count }) => {
      set.claimsLost.at(label(table)).value += count
    })
    this.#on('claims.recovered', ({ table, freed, dead }) => {
      set.claimsRecovered.at(label(table)).value += freed
      if (dead > 0) set.claimsDead.at(label(table)).value += dead
    })
    this.#on('claims.handled', ({ table, outcome, durationMs }) => {
      set.claimHandler.at(label(table), outcome).observe(durationMs)
    })
    this.#on('claims.trouble', ({ table, during }) => {
      set.claimsTrouble.at(label(table), during).value += 1
    })
  }

  #countLeases(): void {
    const { set } = this
    const count = (name: string, event: string): void => {
      const label = this.#bounded('lease', leaseLabel(name))
      if (this.#isNew('lease', label)) {
        for (const each of ['lost', 'timeout', 'renewal_failed']) set.leases.at(label, each)
      }
      set.leases.at(label, event).value += 1
    }
    this.#on('lease.acquired', ({ name, waitMs }) => {
      count(name, 'acquired')
      set.leaseWait.at(this.#bounded('lease', leaseLabel(name))).observe(waitMs)
    })
    this.#on('lease.renewed', ({ name }) => count(name, 'renewed'))
    this.#on('lease.released', ({ name }) => count(name, 'released'))
    this.#on('lease.lost', ({ name }) => count(name, 'lost'))
    this.#on('lease.busy', ({ name }) => count(name, 'busy'))
    this.#on('lease.timeout', ({ name }) => count(name, 'timeout'))
    this.#on('lease.renewal-failed', ({ name }) => count(name, 'renewal_failed'))
    const lead = (name: string, value: number): void => {
      set.leading.at(this.#bounded('lease', leaseLabel(name))).value = value
    }
    this.#on('leader.elected', ({ name }) => lead(name, 1))
    this.#on('leader.ended', ({ name }) => lead(name, 0))
  }

  #countRest(): void {
    const { set } = this
    this.#on('schedule.tick', ({ schedule, outcome, attempt, durationMs, lateMs }) => {
      const label = this.#bounded('schedule', schedule)
      if (this.#isNew('schedule', label)) {
        for (const each of ['done', 'failed', 'lost', 'unknown']) set.ticks.at(label, each)
      }
      set.ticks.at(label, outcome).value += 1
      if (attempt === 0) return
      set.tickDuration.at(label).observe(durationMs)
      set.tickLate.at(label).observe(lateMs)
    })
    this.#on('schedule.trouble', ({ schedule }) => {
      set.scheduleTrouble.at(this.#bounded('schedule', schedule)).value += 1
    })
    const once = (outcome: string, durationMs: number): void => {
      set.once.at(outcome).value += 1
      set.onceDuration.at(outcome).observe(durationMs)
    }
    this.#on('once.ran', ({ durationMs }) => once('ran', durationMs))
    this.#on('once.replayed', ({ durationMs }) => once('replayed', durationMs))
    this.#on('once.refused', ({ reason, durationMs }) => once(reason, durationMs))
    this.#on('error', ({ error }) => {
      set.errors.at(reasonOf(error)).value += 1
    })
    this.#on('observe.trouble', ({ during }) => {
      set.observeTrouble.at(during).value += 1
    })
  }
}

/** Leases are often named after what they are for and whom: only the first part is told apart. */
function leaseLabel(name: string): string {
  const end = name.indexOf(':')
  return end <= 0 ? name : name.slice(0, end)
}
