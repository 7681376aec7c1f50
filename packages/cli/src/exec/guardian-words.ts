/** What the holder of the lease tells the guardian. Moments are of `machineMs`. */
export type ToGuardian =
  | { readonly kind: 'spawn'; readonly command: readonly string[]; readonly until: number }
  /** The holder knows the process, so that it can end it if the guardian dies: let it begin. */
  | { readonly kind: 'go' }
  /** The lease was renewed, or not yet: the command may run until then. */
  | { readonly kind: 'until'; readonly until: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }

/** What the guardian tells the holder. */
export type FromGuardian =
  | { readonly kind: 'spawned'; readonly group: number }
  | { readonly kind: 'alive' }
  | ({ readonly kind: 'ended' } & Ended)
  | ({ readonly kind: 'not-started' } & NotStarted)

/** The system did not start the command. */
export interface NotStarted {
  /** What it said: E2BIG, EAGAIN, … */
  readonly reason: string
}

/** How the command ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** It was told to end, because the lease was about to expire. */
  readonly cut: boolean
}
