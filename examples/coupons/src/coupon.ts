/** What somebody sends. A client that has no answer sends the same request again. */
export interface Redeem {
  readonly requestId: string
  readonly code: string
  readonly userId: string
}

/** How often one user may redeem one code. */
export const perUser = 2
