/** What a process that is recorded and the command that records it tell each other. */
import type { Heard } from '../hunt/record/heard.ts'
import type { Input } from '../hunt/model.ts'
import type { Ended } from '../hunt/record/record-calls.ts'
import type { Database } from './databases.ts'

/** Names the socket of the command to the processes that it has started. */
export const socketVariable = 'HOLDFAST_HUNT_SOCKET'

/** A call as it is written down outside of the process that made it. */
export interface RecordedCall extends Ended {
  readonly name: string
  readonly input: Input
  /** Variables that were other ones when it was made than those of the first call; see `differing`. */
  readonly differing?: readonly string[]
  /** Databases that it was made with, if that of the hunt is not among them. */
  readonly others?: readonly string[]
}

/** From a process that is recorded. */
export type FromProcess =
  /** A call is about to be made; `environment` comes with the first one, and when it has changed. */
  | {
      readonly kind: 'begin'
      readonly turn: number
      readonly environment?: Readonly<Record<string, string | undefined>>
    }
  | {
      readonly kind: 'end'
      readonly turn: number
      readonly call: RecordedCall | undefined
      /** To which something was sent meanwhile. */
      readonly databases: readonly Database[]
    }
  /** Once, when the process talks to a database for the first time. */
  | { readonly kind: 'database' }
  | { readonly kind: 'heard'; readonly one: Heard }

/** To it: the call may be made. Those that are not `recorded` need no end. */
export interface Go {
  readonly turn: number
  readonly recorded: boolean
}
