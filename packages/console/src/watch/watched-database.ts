import type { Driver } from 'holdfast'
import type { ClaimsOptions } from 'holdfast/claims'
import { examine, type HealthFinding } from 'holdfast/health'
import {
  createInterventions,
  createMetrics,
  createObserver,
  type Interventions,
  type Observer,
} from 'holdfast/observe'
import { ConsoleOptionError } from '../core/option-error.ts'
import { type DeadJobs, watchDeadJobs } from './dead-jobs.ts'
import { History, type HistoryLimits } from './history.ts'
import type { Redactor } from './redactor.ts'
import { SharedReads } from './shared-reads.ts'
import { TreeFeed, type TreeFeedOptions } from './tree-feed.ts'

/** A database to look at. */
export interface DatabaseSource {
  /** With a driver everything can be shown, and actions can be switched on. */
  readonly driver?: Driver<unknown>
  /** Instead of it an observer: looking only, without Doctor and actions. */
  readonly observer?: Observer
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
  /** Tables of your own that rows are claimed from. */
  readonly claims?: readonly ClaimsOptions[]
  /** Sessions with this application_name are the console's own, and no action touches them. */
  readonly ownApplication?: string
}

/** Metrics as Prometheus reads them. */
export interface MetricsSource {
  prometheus(): string | Promise<string>
}

/** One database, with everything that is kept about it. */
export interface WatchedDatabase {
  readonly name: string
  readonly observer: Observer
  readonly interventions: Interventions | undefined
  readonly deadJobs: DeadJobs | undefined
  readonly examine: (() => Promise<readonly HealthFinding[]>) | undefined
  readonly metrics: MetricsSource | undefined
  readonly reads: SharedReads
  readonly history: History
  readonly feed: TreeFeed
  close(): void
}

export function watchDatabase(
  name: string,
  source: DatabaseSource,
  redactor: Redactor,
  limits: HistoryLimits & TreeFeedOptions,
  metrics: boolean | MetricsSource,
): WatchedDatabase {
  const { driver, schema, claims, ownApplication } = source
  const places = {
    ...(schema === undefined ? {} : { schema }),
    ...(claims === undefined ? {} : { claims }),
  }
  const observer = source.observer ?? (driver && createObserver(driver, places))
  if (observer === undefined) {
    throw new ConsoleOptionError('A console needs a driver or an observer to look through.')
  }
  const history = new History(limits)
  const feed = new TreeFeed(observer, redactor, history, limits)
  const ownMetrics = metrics === true ? createMetrics({ observer }) : undefined
  return {
    name,
    observer,
    interventions:
      driver &&
      createInterventions(driver, {
        ...(schema === undefined ? {} : { schema }),
        ...(ownApplication === undefined ? {} : { exceptApplication: ownApplication }),
      }),
    deadJobs: driver && watchDeadJobs(driver, schema),
    examine: driver && (() => examine(driver, places)),
    metrics: typeof metrics === 'boolean' ? ownMetrics : metrics,
    reads: new SharedReads(),
    history,
    feed,
    close() {
      feed.close()
      ownMetrics?.stop()
    },
  }
}
