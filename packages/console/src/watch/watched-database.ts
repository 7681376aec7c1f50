import type { Driver } from 'holdfast'
import type { ClaimsOptions } from 'holdfast/claims'
import type { HealthFinding } from 'holdfast/health'
import { createMetrics, type Interventions, type Observer } from 'holdfast/observe'
import { ConsoleOptionError } from '../core/option-error.ts'
import type { EngineName } from '../core/wire.ts'
import type { DeadJobs } from './dead-jobs.ts'
import { History, type HistoryLimits } from './history.ts'
import { lookThrough } from './looking.ts'
import type { Redactor } from './redactor.ts'
import { SharedReads } from './shared-reads.ts'
import { TreeFeed, type TreeFeedOptions } from './tree-feed.ts'

/** A database to look at. */
export interface DatabaseSource {
  /**
   * With a driver everything can be shown that its engine has, and actions can be switched on. On MariaDB and MySQL: the
   * pages Now and Doctor.
   */
  readonly driver?: Driver<unknown>
  /** Instead of it an observer of PostgreSQL: looking only, without Doctor and actions. */
  readonly observer?: Observer
  /**
   * Where Holdfast's tables are; on MariaDB and MySQL a database. @defaultValue 'holdfast', and the database that the
   * connections have chosen
   */
  readonly schema?: string
  /** Tables of your own that rows are claimed from. */
  readonly claims?: readonly ClaimsOptions[]
  /**
   * Sessions with this application_name (on MySQL: program_name) are the console's own, and no action touches them. MariaDB
   * tells none.
   */
  readonly ownApplication?: string
}

/** Metrics as Prometheus reads them. */
export interface MetricsSource {
  prometheus(): string | Promise<string>
}

/** One database, with everything that is kept about it. */
export interface WatchedDatabase {
  readonly name: string
  readonly engine: EngineName
  /** What leaves the server goes through it. */
  readonly redactor: Redactor
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
  redactors: Redactor,
  limits: HistoryLimits & TreeFeedOptions,
  metrics: boolean | MetricsSource,
): WatchedDatabase {
  const { driver, schema, claims, ownApplication } = source
  const looking = driver && lookThrough(driver, { schema, claims, ownApplication })
  const engine = looking?.engine ?? 'postgres'
  const observer = source.observer ?? looking?.observer
  if (observer === undefined) {
    throw new ConsoleOptionError('A console needs a driver or an observer to look through.')
  }
  const redactor = redactors.of(engine)
  const history = new History(limits)
  const feed = new TreeFeed(observer, redactor, history, limits)
  // Their gauges are those of PostgreSQL: most of them would say 0 of what was not looked at.
  const sees = metrics === true && engine === 'postgres'
  const ownMetrics = sees ? createMetrics({ observer }) : undefined
  return {
    name,
    engine,
    redactor,
    observer,
    interventions: looking?.interventions,
    deadJobs: looking?.deadJobs,
    examine: looking?.examine,
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
