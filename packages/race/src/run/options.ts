import type { Pool } from 'pg'
import type { FlowOutcome } from '../core/model.ts'
import type { Classify } from './answer/said.ts'

/** Rows of a query, read by their column names. */
export type Rows = Record<string, unknown>[]

/** The runner's own connection, for what happens before and after the flows. */
export interface DatabaseContext {
  query(text: string, values?: readonly unknown[]): Promise<Rows>
  /** A template whose values become parameters. */
  sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<Rows>
}

/** What an invariant may look at: the final state, and how the flows ended. */
export interface InvariantContext extends DatabaseContext {
  readonly outcomes: Readonly<Record<string, FlowOutcome>>
}

/** What a flow is given. Everything that connects through it is scheduled. */
export interface FlowContext {
  /** The flow's name. */
  readonly flow: string
  /** For any client: a port of this machine that leads to the database. The same in every run. */
  readonly url: string
  /** A pool of node-postgres, kept open between runs. */
  readonly pool: Pool
  /**
   * Says in another process whose work it is: a `traceparent` of W3C Trace Context. Requests to this machine have it as
   * their header already; see `openPort`.
   */
  readonly traceparent: string
  /** Aborted when the run is over. */
  readonly signal: AbortSignal
  /** A place at which other flows may go on although no statement is sent: a call to elsewhere. */
  step(label: string): Promise<void>
}

/** What is run: code as it is in production, with the context's pool or address. */
export type Flow = (context: FlowContext) => Promise<unknown>

export interface RunnerOptions {
  /** The database, without a pooler in between. */
  readonly url: string
  /** In the order in which schedules count them. */
  readonly flows: Readonly<Record<string, Flow>>
  /** Runs before every schedule. */
  readonly seed?: ((context: DatabaseContext) => Promise<unknown>) | undefined
  /** `restore`: rows and sequences are put back. `clone`: every schedule has a copy of the database. */
  readonly state?: 'restore' | 'clone' | undefined
  /** Throws if the final state is not allowed. */
  readonly invariant?: ((context: InvariantContext) => Promise<unknown>) | undefined
  /** Which tables and columns make the state that is compared; `false` compares outcomes only. */
  readonly oracle?:
    | { readonly tables?: readonly string[]; readonly ignore?: readonly string[] }
    | false
    | undefined
  /** What an answer or an error says; by default statuses of HTTP, SQLSTATEs and the kind of error do. */
  readonly outcome?: Classify | undefined
  /** `split` (default): an autocommit statement is executed and committed in two steps. */
  readonly autocommit?: 'split' | 'atomic' | undefined
  /** `open` (default): others can act between the statements that a function or a trigger runs. */
  readonly functions?: 'open' | 'atomic' | undefined
  /** What is done about a flow that crashed, after all the others have ended. */
  readonly recover?: ((context: FlowContext, flow: string) => Promise<unknown>) | undefined
  /** Who dies of a deadlock: every candidate in turn (default), or who waited first. */
  readonly victims?: 'choose' | 'first' | undefined
  readonly limits?:
    | {
        /** Steps of one run; default 500. */
        readonly steps?: number
        /** How long a flow may do something else than SQL before the others go on; default 25. */
        readonly graceMs?: number
        /** How long nothing at all may happen before the run is given up; default 5,000. */
        readonly hangMs?: number
        /** How long seed, invariant and recovery may take while nothing happens in the database; default 20,000. */
        readonly codeMs?: number
      }
    | undefined
}
