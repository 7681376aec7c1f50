/** What a generated body on MariaDB, MySQL or SQLite is made of: plain data, so that it can be repeated and cut down. */

/** Where the library runs a body. */
export type Entry =
  | 'guard'
  | 'tx.run'
  | 'tx.run, repeatable read'
  | 'rows.optimistic'
  | 'withVersionCheck'
  | 'once'
  | 'transactionHandler'
  | 'transactional tick'

/** Calls into other parts of the library with the handle of the body. */
export const calls = [
  'acquire',
  'tryAcquire',
  'assertHeld',
  'rows.lock',
  'updateVersioned',
  'once',
] as const
export type Call = (typeof calls)[number]

/** Calls of a client that begin or end a transaction, or give its connection away. */
export const ownCalls = ['begin', 'commit', 'rollback', 'release'] as const
export type OwnCall = (typeof ownCalls)[number]

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
    /** Begins or ends a transaction, or commits what is open before it does something else. */
    | { readonly do: 'control'; readonly text: string }
    /** Does so where no reader of texts sees it: in a procedure, a prepared text, a trigger. */
    | { readonly do: 'hidden'; readonly text: string }
    /** Looks as if it ended or began a transaction, and does not. */
    | { readonly do: 'look-alike'; readonly text: string }
    | { readonly do: 'own call'; readonly what: OwnCall }
    /** A helper that was written for a connection of its own: BEGIN, INSERT, COMMIT or ROLLBACK. */
    | { readonly do: 'helper'; readonly ends: 'COMMIT' | 'ROLLBACK' }
    /** One of the server's errors; some of them end the transaction. */
    | { readonly do: 'error'; readonly what: string }
    /** A statement that nobody waits for. */
    | { readonly do: 'unawaited'; readonly what: 'insert' | 'fail' | 'COMMIT' | 'ROLLBACK' }
    | { readonly do: 'set'; readonly text: string }
    | { readonly do: 'kill'; readonly wait: boolean }
    | { readonly do: 'call'; readonly what: Call }
    | { readonly do: 'root'; readonly what: 'read' | 'insert' }
    | { readonly do: 'throw' }
  )

/** Use of the handle after the body has returned: at once, or when its caller was told. */
export interface Late {
  readonly when: 'microtask' | 'immediate' | 'outside'
  readonly what: 'insert' | 'insert beneath' | 'insert prepared' | 'acquire'
}

export interface Body {
  /** Which client, and how it is set up. */
  readonly place: string
  readonly entry: Entry
  readonly actions: readonly Action[]
  readonly late: readonly Late[]
}

type Weighted<T> = readonly (readonly [weight: number, T])[]

/** What the bodies of one product may say. */
export interface Vocabulary {
  readonly entries: Weighted<Entry>
  readonly controls: Weighted<string>
  readonly hidden: Weighted<string>
  readonly lookAlikes: Weighted<string>
  readonly errors: Weighted<string>
  readonly settings: Weighted<string>
  /** A connection can be ended from elsewhere, and a statement be left behind. */
  readonly hasServer: boolean
}

/** All actions, nested ones included. */
export function flat(actions: readonly Action[]): readonly Action[] {
  return actions.flatMap((action) =>
    action.do === 'nested' ? [action, ...flat(action.actions)] : [action],
  )
}
