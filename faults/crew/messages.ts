import type { Seed } from '../core/model.ts'
import type { Missing } from './actor.ts'
import type { Post } from './application.ts'

/** What a process of the crew is told to do. */
export interface Orders {
  readonly process: string
  readonly index: number
  readonly url: string
  readonly post: Post
  readonly folder: string
  readonly seed: Seed
  /** When the episode began, for slots. */
  readonly epoch: string
  readonly workloads: readonly string[] | undefined
  readonly without: readonly Missing[]
  readonly connections: number
  /** The longest pause between two operations of an actor. */
  readonly pauseMs: number
}

export type ToMember =
  | { readonly kind: 'work'; readonly orders: Orders }
  | { readonly kind: 'clock'; readonly byMs: number }
  | { readonly kind: 'stop' }

export type FromMember =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly counts: Readonly<Record<string, number>> }
  /** `spent`: its client may have left something open, so the process has to end as well. */
  | { readonly kind: 'stopped'; readonly spent: boolean }
  | { readonly kind: 'trouble'; readonly text: string }
