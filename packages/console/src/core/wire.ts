/**
 * What goes over the wire beside the observer's own data. Types only, and nothing of Node: the browser
 * side imports them too.
 */
import type { HotKey, LockTree, ObservedLock } from 'holdfast/observe'

/** What somebody may do. Each may do what the ones before it may, but `metrics`, which is for scrapers. */
export type Role = 'metrics' | 'view' | 'operate'

/** Something that changes the database. */
export type Action =
  | 'cancel'
  | 'terminate'
  | 'schedule-pause'
  | 'schedule-resume'
  | 'schedule-run'
  | 'job-retry'
  | 'job-delete'

/** Answer of `GET api/info`. */
export interface Info {
  readonly version: string
  readonly identity: { readonly name: string; readonly role: Role }
  /** To be sent as `x-holdfast-csrf`; absent with a bearer token, which needs none. */
  readonly csrf?: string
  /** When the session ends at the latest; absent where the host application decides. */
  readonly expiresAt?: string
  /** What this identity may do, and can be done here. */
  readonly actions: readonly Action[]
  readonly redaction: { readonly keys: boolean; readonly queries: boolean }
  readonly databases: readonly DatabaseInfo[]
  readonly pollMs: number
  readonly history: { readonly minutes: number; readonly always: boolean }
}

/** Answer of `POST api/login`. */
export interface LoggedIn {
  readonly identity: Info['identity']
  readonly csrf?: string
}

/** `innodb` is MariaDB and MySQL. */
export type EngineName = 'postgres' | 'innodb'

/** One database that the console looks at. */
export interface DatabaseInfo {
  readonly name: string
  /** What it has to show depends on it: on `innodb` the lock tree, transactions and the doctor. */
  readonly engine: EngineName
  readonly features: { readonly doctor: boolean; readonly actions: boolean }
}

/** Data of the event `tree`. */
export interface TreeEvent extends LockTree {
  readonly hotKeys: readonly (HotKey & Pick<ObservedLock, 'kind'>)[]
}

/** A job that had its last attempt. */
export interface DeadJobEntry {
  readonly id: string
  readonly queue: string
  readonly scope: string
  readonly uniqueKey?: string
  readonly priority: number
  readonly attempts?: number
  readonly maxAttempts: number
  readonly enqueuedAt: string
  /** When it was due last. */
  readonly runAt: string
  /** Why it failed last. */
  readonly error?: string
}

/** Answer of `GET api/jobs`: without their payloads. */
export interface DeadJobList {
  readonly jobs: readonly DeadJobEntry[]
  /** Pass it as `after` to get the next ones; absent at the end. */
  readonly next?: string
}

/** Answer of `GET api/job`. */
export interface DeadJobReport {
  readonly job: DeadJobEntry & {
    /** As JSON; of a large one the beginning. */
    readonly payload: string
  }
}

/** One instant that is remembered. */
export interface HistoryPoint {
  readonly at: string
  readonly sessions: number
  readonly waiting: number
  readonly longestWaitMs: number
  /** Of one lock, where one was asked for. */
  readonly holders?: readonly number[]
}

/** Every answer that is not what was asked for. */
export interface ApiError {
  readonly code: string
  readonly message: string
  /** What to do about it. */
  readonly next: string
  /** What the database said, where it did. */
  readonly sqlState?: string
}
