import { channels, publish } from '../../core/events.ts'
import { CounterFamily, LabelValues, type MetricFamily } from './metric-family.ts'
import type { Observer } from '../observer.ts'

const gauge = (name: string, help: string, ...labels: readonly string[]): CounterFamily =>
  new CounterFamily(name, help, labels, 'gauge')

/** However many ask: the server is looked at no more often than this. */
const freshForMs = 1_000

/** What is seen on the server, as gauges: looked at when somebody asks for metrics. */
export class ServerGauges {
  readonly #observer: Observer | undefined
  readonly #tables: LabelValues
  #looking: Promise<void> | undefined
  #lookedAt = Number.NEGATIVE_INFINITY

  readonly up: CounterFamily = gauge(
    'holdfast_server_up',
    '1 if the last look at the server succeeded.',
  )
  readonly waiting: CounterFamily = gauge(
    'holdfast_server_waiting_sessions',
    'Sessions that wait for a lock, of whatever kind.',
  )
  readonly longestWait: CounterFamily = gauge(
    'holdfast_server_longest_wait_seconds',
    'How long the one that waits longest has waited.',
  )
  readonly oldestTransaction: CounterFamily = gauge(
    'holdfast_server_oldest_transaction_seconds',
    'Age of the oldest transaction.',
  )
  readonly xminAge: CounterFamily = gauge(
    'holdfast_server_oldest_xmin_age_transactions',
    'How many transactions ago vacuum has to stop at.',
  )
  readonly overdueHolds: CounterFamily = gauge(
    'holdfast_server_overdue_holds',
    'Holds that should have expired and that nobody has swept.',
    'book',
  )
  readonly readyClaims: CounterFamily = gauge(
    'holdfast_server_ready_claims',
    'Rows that could be claimed now, up to a bound.',
    'table',
  )
  readonly oldestReady: CounterFamily = gauge(
    'holdfast_server_oldest_ready_claim_seconds',
    'How long the oldest row could have been claimed.',
    'table',
  )
  readonly strandedClaims: CounterFamily = gauge(
    'holdfast_server_stranded_claims',
    'Claims whose lease is over and that nobody has given back.',
    'table',
  )
  readonly deadClaims: CounterFamily = gauge(
    'holdfast_server_dead_claims',
    'Rows that had their last attempt, up to a bound.',
    'table',
  )
  readonly lateSchedules: CounterFamily = gauge(
    'holdfast_server_late_schedules',
    'Schedules with a tick that was due a while ago and that nobody has taken.',
  )

  constructor(observer: Observer | undefined, mostValues: number) {
    this.#observer = observer
    this.#tables = new LabelValues(mostValues)
  }

  families(): readonly MetricFamily[] {
    return Object.values(this) as readonly MetricFamily[]
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const observer = this.#observer
    if (observer === undefined) return
    if (this.#looking === undefined) {
      if (performance.now() - this.#lookedAt < freshForMs) return
      this.#looking = this.#lookWith(observer).finally(() => {
        this.#looking = undefined
        this.#lookedAt = performance.now()
      })
    }
    await this.#looking
  }

  async #lookWith(observer: Observer): Promise<void> {
    const results = await Promise.allSettled([
      this.#locks(observer),
      this.#transactions(observer),
      this.#books(observer),
      this.#claims(observer),
      this.#schedules(observer),
    ])
    const failed = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    this.up.at().value = failed.length === 0 ? 1 : 0
    for (const { reason } of failed) {
      publish(channels.observeTrouble, { during: 'metrics', error: reason })
    }
  }

  async #locks(observer: Observer): Promise<void> {
    try {
      const { sessions } = await observer.locks()
      const waits = sessions.flatMap(({ waitingMs }) => waitingMs ?? [])
      this.waiting.at().value = waits.length
      this.longestWait.at().value = Math.max(0, ...waits) / 1_000
    } catch (error) {
      // A value that is no longer true is worse than none.
      this.waiting.clear()
      this.longestWait.clear()
      throw error
    }
  }

  async #transactions(observer: Observer): Promise<void> {
    this.oldestTransaction.clear()
    this.xminAge.clear()
    const { longest, oldestXmin } = await observer.transactions({ limit: 1 })
    this.oldestTransaction.at().value = (longest[0]?.transactionMs ?? 0) / 1_000
    this.xminAge.at().value = oldestXmin?.age ?? 0
  }

  async #books(observer: Observer): Promise<void> {
    this.overdueHolds.clear()
    for (const { book, overdueHolds } of await observer.books()) {
      this.overdueHolds.at(this.#tables.bounded(book)).value += overdueHolds
    }
  }

  async #claims(observer: Observer): Promise<void> {
    for (const family of [
      this.readyClaims,
      this.oldestReady,
      this.strandedClaims,
      this.deadClaims,
    ]) {
      family.clear()
    }
    for (const { table, queue, ready, stranded, dead, oldestReadyMs } of await observer.claims()) {
      const label = this.#tables.bounded(queue === undefined ? table : `${table}:${queue}`)
      if (ready !== undefined) this.readyClaims.at(label).value += ready
      if (stranded !== undefined) this.strandedClaims.at(label).value += stranded
      if (dead !== undefined) this.deadClaims.at(label).value += dead
      if (oldestReadyMs !== undefined) this.oldestReady.at(label).value = oldestReadyMs / 1_000
    }
  }

  async #schedules(observer: Observer): Promise<void> {
    this.lateSchedules.clear()
    const schedules = await observer.schedules({ ticks: 1 })
    const late = schedules.filter(({ advice }) =>
      advice.some(({ code }) => code === 'schedule-late'),
    )
    this.lateSchedules.at().value = late.length
  }
}
