import type { Body } from './model.ts'

/** Something that a body asked the database to keep, under an id of its own. */
export interface Write {
  readonly id: string
  /** `root`: beside the transaction, on purpose. `late`: begun after the caller was told; `just late`: after the body. */
  readonly by: 'body' | 'unawaited' | 'root' | 'late' | 'just late'
  /** What whoever sent it was told. */
  state: 'sent' | 'ok' | 'failed'
  /** The body rolled back to a savepoint from before it. */
  undone: boolean
  /** How many statements that may end the transaction were sent before it. */
  readonly endings: number
}

/** One run of the body; the library may run it again. */
export interface Attempt {
  readonly number: number
  /** How the server numbers its connection, where there is a server. */
  connection: number
  readonly writes: Write[]
  /** What was sent that may end the transaction, or begin one. */
  readonly endings: string[]
  /** Something was sent that nobody can look into. */
  opaque: boolean
  /** Something failed, was killed, or is nobody's to wait for. */
  disturbed: boolean
  /** After which step another session saw what it had written. */
  seenAfter?: string
  /** After which step somebody else could take the lock. */
  freeAfter?: string
  /** Calls of the library that said something that was not so. */
  readonly lies: string[]
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

/** All that is known about one run of a generated body. */
export interface RunRecord {
  readonly body: Body
  readonly attempts: readonly Attempt[]
  readonly told: Told
  /** Statements that were never answered. */
  readonly unanswered: number
  /** Ids of writes that are there. */
  readonly present: ReadonlySet<string>
  /** What was left open. */
  readonly leftovers: string
  /** What the next user of the connection finds changed; undefined if the body changed it for the session itself. */
  readonly changedSettings: string | undefined
}

export function tellingOf(told: Told): string {
  if (told.kind !== 'rejected') return told.kind
  return told.ended === undefined ? told.code : `${told.code} (${told.ended})`
}
