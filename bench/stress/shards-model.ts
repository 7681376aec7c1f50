import type { MoveOutcome, MoveStep } from '../../packages/holdfast/src/shards/index.ts'

/** What an application is told when it starts. */
export interface AppSetup {
  readonly urls: Readonly<Record<string, string>>
  /** What it was told and did is appended here, so that nothing is lost when it is killed. */
  readonly file: string
  readonly moving: readonly string[]
  readonly others: readonly string[]
  /** Between two operations of each of its workers. */
  readonly thinkMs: number
}

/** What it is told later: to say how much it has done, at another pace from now on. */
export interface AppOrder {
  readonly thinkMs?: number
}

/** A line of the history. An operation without a later `ok` or `no` may or may not have happened. */
export interface AppLine {
  readonly kind: 'use' | 'seat' | 'hold' | 'once'
  readonly key: string
  readonly id: string
  readonly outcome: 'begun' | 'ok' | 'no'
}

/** Seats of a key are few: two servers that both gave them out would be found out. */
export const seatsOfKey = 25

/** What a mover is to do. */
export type MoverTask = {
  readonly urls: Readonly<Record<string, string>>
} & (
  | { readonly act: 'move'; readonly buckets: readonly number[]; readonly to: string }
  | { readonly act: 'resume' | 'undo'; readonly id: string }
)

/** What a mover tells. */
export type MoverNews =
  | { readonly kind: 'step'; readonly id: string; readonly step: MoveStep }
  | { readonly kind: 'over'; readonly outcome: MoveOutcome | undefined }
  | { readonly kind: 'failed'; readonly why: string }

/** The user's table that goes along. */
export const effects = 'public.effect'
