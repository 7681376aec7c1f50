/** Who has the connections of a pool. */
export interface PoolUse {
  readonly size: number
  /** Of this driver, by what they are used for. */
  readonly transactions: number
  readonly statements: number
  readonly sessions: number
  /** Taken by others: the application's own code, or another driver on this pool. */
  readonly others: number
  /** Who waits for one, ourselves included. */
  readonly waiting: number
  /** How long the longest of ours has had its connection. */
  readonly oldestMs: number
}
