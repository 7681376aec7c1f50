/** What a generated body is made of: plain data, so that it can be repeated, cut down and printed. */

export const clientNames = [
  'pg',
  'postgres.js',
  'prisma',
  'drizzle-pg',
  'drizzle-postgres.js',
  'kysely',
  'typeorm',
] as const
export type ClientName = (typeof clientNames)[number]

/** A client, direct or through PgBouncer in transaction mode. */
export interface Place {
  readonly client: ClientName
  readonly pooled: boolean
}

/** Where the library runs a body. */
export type Entry =
  | 'guard'
  | 'tx.run'
  | 'rows.optimistic'
  | 'withVersionCheck'
  | 'once'
  | 'transactionHandler'
  | 'transactional tick'

/** Calls into other parts of the library with the handle of the body. */
export const calls = [
  'acquire',
  'tryAcquire',
  'acquire own',
  'assertHeld',
  'assertHeld other',
  'rows.lock',
  'updateVersioned',
  'once',
  'consume',
  'enqueue',
] as const
export type Call = (typeof calls)[number]

export type OrmControl = 'begin' | 'commit' | 'rollback' | 'release'

/** A statement that nobody waits for; `nested`: a savepoint that is still open when the caller has been told. */
export type Stray = 'insert' | 'slow insert' | 'fail' | 'rollback' | 'commit' | 'nested'

interface Step {
  /** The body catches what this action throws and goes on. */
  readonly swallow?: boolean
  /** Only the first time the body runs; a retry goes on without it. */
  readonly firstOnly?: boolean
  /** Sent by another call of the client than the usual one, or on the client beneath an ORM. */
  readonly by?: 'other' | 'beneath'
}

export type Action = Step &
  (
    | { readonly do: 'read' }
    | { readonly do: 'insert' }
    | { readonly do: 'savepoint'; readonly name: string }
    | { readonly do: 'rollback to'; readonly name: string }
    | { readonly do: 'release'; readonly name: string }
    /** A savepoint by the client's own call. */
    | { readonly do: 'nested'; readonly actions: readonly Action[]; readonly fails: boolean }
    /** BEGIN, COMMIT, ROLLBACK and their kin, as text. */
    | { readonly do: 'control'; readonly text: string }
    /** The same where a reader of texts does not see it: after a string that ends otherwise than it looks. */
    | { readonly do: 'disguised'; readonly text: string }
    /** By the calls of an ORM, where it has some. */
    | { readonly do: 'orm'; readonly what: OrmControl }
    /** Looks as if it ended or began a transaction, and does not. */
    | { readonly do: 'look-alike'; readonly text: string }
    /** A helper that was written for a connection of its own: BEGIN, INSERT, COMMIT or ROLLBACK. */
    | { readonly do: 'helper'; readonly ends: 'COMMIT' | 'ROLLBACK' }
    | { readonly do: 'fail' }
    | { readonly do: 'unawaited'; readonly what: Stray }
    | { readonly do: 'set'; readonly text: string }
    /** Writes another lock into the marker by which the library knows what is held. */
    | { readonly do: 'spoof' }
    | { readonly do: 'kill'; readonly wait: boolean }
    | { readonly do: 'call'; readonly what: Call }
    | { readonly do: 'root'; readonly what: 'read' | 'insert' }
    | { readonly do: 'throw' }
  )

/** Use of the handle after the body has returned. */
export interface Late {
  /**
   * `microtask` and `immediate`: begun just after the body returned. `inside`: after the caller was told,
   * by something that the body started; `outside`: by the caller, who kept the handle.
   */
  readonly when: 'microtask' | 'immediate' | 'inside' | 'outside'
  readonly what: 'insert' | 'updateVersioned' | 'acquire' | 'nested insert' | 'insert beneath'
}

export interface Body extends Place {
  readonly entry: Entry
  readonly actions: readonly Action[]
  readonly late: readonly Late[]
  /** Two of it at once, under one key. */
  readonly twin: boolean
}

/** Whether a text that a body sends as control ends a transaction, in any spelling. */
export function endsTransaction(text: string): boolean {
  return /\b(commit|rollback(?! to)|end|abort|prepare transaction)\b/i.test(text)
}

/** All actions, nested ones included. */
export function flat(actions: readonly Action[]): readonly Action[] {
  return actions.flatMap((action) =>
    action.do === 'nested' ? [action, ...flat(action.actions)] : [action],
  )
}
