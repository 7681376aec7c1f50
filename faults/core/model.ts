/**
 * What the parts of the fault harness say to each other. Applications write histories, the nemesis breaks
 * things, checkers read what is left; none of them knows the others.
 */

/** The same seed makes the same plan; which operations a fault meets is up to the machine. */
export type Seed = number

/**
 * How an operation ended for whoever asked for it. `unknown` is honest only if nobody can know: the library
 * says so by `UnknownOutcomeError`. Every other error is `failed`: a promise that nothing was written.
 */
export type Outcome = 'ok' | 'refused' | 'failed' | 'unknown'

/** One line of a history. `at` is the machine's monotonic clock in nanoseconds, alike in all processes. */
export interface HistoryEvent {
  readonly at: string
  /** Which incarnation of which process: a killed one never comes back under its old name. */
  readonly process: string
  readonly workload: string
  /** What was done: `consume`, `settle`, `issue`, `claim`, `write`, … */
  readonly operation: string
  /** What it was done to: the account, the lease, the row. Checks of order are made per key. */
  readonly key: string
  /** Unique per attempt of an application, so that an end finds its beginning. */
  readonly attempt: string
  /** The operation id given to Holdfast, if it has one; a retry has another attempt and the same id. */
  readonly id?: string
  readonly type: 'invoke' | Outcome
  /** What was asked or answered, as the workload's checker needs it. */
  readonly value?: unknown
  /** The code or SQLSTATE of an error. */
  readonly code?: string
}

/** What the nemesis did, for the same timeline. */
export interface FaultEvent {
  readonly at: string
  readonly fault: string
  readonly type: 'begins' | 'healed' | 'note'
  readonly note?: string
}

/** Something that must not have happened. */
export interface Violation {
  /** Of the rule: `acknowledged_lost`, `bound_crossed`, `applied_twice`, `stale_write`, `no_progress`, `leak`, … */
  readonly rule: string
  readonly workload: string
  /** A sentence with an example, enough to find it in the history. */
  readonly what: string
}

/** How applications reach the database. */
export interface Doors {
  /** Through PgBouncer in transaction mode. */
  readonly pooled: string
  /** Straight to the primary, through a port that can be cut. */
  readonly direct: string
}

/** Servers with everything in front of them, that can be broken and mended. */
export interface Cluster extends AsyncDisposable {
  readonly tier: 'single' | 'pair' | 'patroni'
  /** A new database with Holdfast's schema and the workloads' tables, and the doors to it. */
  open(prepare: (adminUrl: string) => Promise<void>): Promise<{ database: string; doors: Doors }>
  /** The primary of now, past every door: for checkers and the nemesis. */
  adminUrl(database: string): string
  /** Removes the database; whoever is connected to it is thrown out. */
  drop(database: string): Promise<void>
  /** Puts everything right, whatever was done, and resolves when the doors answer again. */
  heal(): Promise<void>
}

/** Processes that work on the database until they are told to stop. */
export interface Crew extends AsyncDisposable {
  /** The process ids of now. */
  readonly pids: readonly number[]
  /** SIGKILL, and another in its place. */
  killOne(which: number): Promise<void>
  /** Moves the wall clock of one application by so much, from its own point of view. */
  jumpClock(which: number, byMs: number): Promise<void>
  /** Operations that ended well so far, of each workload: what progress is measured by. */
  progress(): Promise<Readonly<Record<string, number>>>
  /** Asks them to finish, as an application does before it is replaced, and waits for it. */
  stop(): Promise<void>
}

/** One way to break things. */
export interface Fault<C extends Cluster = Cluster> {
  readonly name: string
  /** Breaks it, waits as long as it should last, mends what only it can mend. `say` notes a detail. */
  strike(stage: {
    readonly cluster: C
    readonly crew: Crew
    readonly database: string
    readonly random: { integer(least: number, most: number): number }
    readonly say: (note: string) => void
  }): Promise<void>
}

/** One kind of application. Its actors run in the crew's processes, its checks in the harness. */
export interface WorkloadChecks {
  readonly name: string
  /** Tables and opening balances. */
  prepare(adminUrl: string): Promise<void>
  /** Reads the histories and the database, when all is healed and everybody has stopped. */
  check(adminUrl: string, history: readonly HistoryEvent[]): Promise<Violation[]>
}
