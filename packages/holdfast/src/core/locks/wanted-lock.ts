/** One piece of a key. `1`, `1n` and `'1'` are the same piece. */
export type KeyPart = string | number | bigint

/** Which number PostgreSQL locks. `hashtext` is worked out by the server, which owns that hash. */
export type LockId =
  | { readonly kind: 'bigint'; readonly id: bigint }
  | { readonly kind: 'hashtext'; readonly text: string }
  | { readonly kind: 'pair'; readonly high: number; readonly low: number }
  | { readonly kind: 'pair-hashtext'; readonly high: number; readonly text: string }

/** A key that is hashed here: its number is known before the server is asked. */
export interface BigintKey extends LockKey {
  readonly lock: { readonly kind: 'bigint'; readonly id: bigint }
}

/** A lock by name. Build it with `lockKey` or, for keys of hand-written SQL, `legacyKey`. */
export interface LockKey {
  /** Readable name, as shown in pg_stat_activity and in errors. */
  readonly name: string
  readonly namespace: string
  readonly lock: LockId
  /** What a sharded driver routes by; by default the key itself. */
  readonly scope: string
}

export type LockMode = 'exclusive' | 'shared'

/** A key with the mode it is wanted in. */
export interface WantedLock {
  readonly key: LockKey
  readonly mode: LockMode
}
