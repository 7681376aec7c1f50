import type { Body } from './bodies-model.ts'

/** A transaction as the server knows it: no two have both in common. */
export interface Origin {
  readonly pid: number
  readonly began: string
}

/** Something that a body asked the database to keep, under an id of its own. */
export interface Write {
  readonly id: string
  readonly table: 'written' | 'doc' | 'movement' | 'work'
  /** `root`: beside the transaction, on purpose. `late`: begun after the body had returned. */
  readonly by: 'body' | 'unawaited' | 'root' | 'late' | 'just late'
  /** What whoever sent it was told. */
  state: 'sent' | 'ok' | 'failed'
  /** The body rolled back to a savepoint from before it. */
  undone: boolean
  /** A statement that may end the transaction was sent before it. */
  readonly afterEnding: boolean
}

/** One run of the body; the library may run it again. */
export interface Attempt {
  readonly number: number
  /** The transaction that it began in. */
  origin?: Origin
  readonly writes: Write[]
  /** Texts sent that may end a transaction, or begin one. */
  readonly controls: string[]
  /** Something failed, was killed, or is nobody's to wait for. */
  disturbed: boolean
  /** In which step somebody else could take the lock. */
  freeAfter?: string
  /** Calls of the library that said something that was not so. */
  readonly lies: string[]
  enteredAt: number
  leftAt?: number
}

export type Told =
  | { readonly kind: 'resolved'; readonly replayed: boolean }
  | {
      readonly kind: 'rejected'
      readonly code: string
      /** Of TX_ENDED_INSIDE. */
      readonly ended: string | undefined
      readonly text: string
    }
  | { readonly kind: 'never' }

/** One caller of the library, and what it was told. */
export interface Caller {
  readonly id: string
  readonly attempts: Attempt[]
  told: Told
  /** Statements that were never answered. */
  unanswered: number
}

/** A row that is there. */
export interface Present {
  readonly origin: Origin | undefined
  readonly held: boolean | undefined
}

/** All that is known about one run of a generated body. */
export interface RunRecord {
  readonly body: Body
  readonly callers: readonly Caller[]
  readonly present: ReadonlyMap<string, Present>
  /** Sessions or locks that were left open. */
  readonly leftovers: string
  /** What the next user of the pool finds changed; undefined if the body changed it for the session itself. */
  readonly changedSettings: string | undefined
}

export function tellingOf(told: Told): string {
  if (told.kind !== 'rejected') return told.kind
  return told.ended === undefined ? told.code : `${told.code} (${told.ended})`
}
