/** What both products tell, in the same words. Moments are seconds since 1970, spans milliseconds. */

/** A connection with a transaction, one that waits, or the one that is asked for. */
export interface SeenConnection {
  readonly pid: number
  readonly user: string
  readonly client: string | undefined
  readonly database: string | undefined
  readonly application: string
  /** `Sleep`, `Query`, `Execute`, … */
  readonly command: string
  /** In that state, as exactly as the product knows it. */
  readonly stateMs: number
  /** `Waiting for table metadata lock`, … */
  readonly doing: string
  readonly query: string
  /** What names its transaction, or what it was in when it was last heard of. */
  readonly transactionId: string | undefined
  /** Exactly, where the product tells. */
  readonly transactionMs: number | undefined
}

/** A transaction of InnoDB. */
export interface SeenTransaction {
  /** Of MariaDB 0 for each that has written nothing. */
  readonly id: string
  /** 0 if no connection has it: it is prepared. */
  readonly pid: number
  readonly startedAt: number
  readonly waitsSince: number | undefined
  /** Of MariaDB: the lock that it waits for. */
  readonly wantedLock: string | undefined
  readonly hasLocks: boolean
}

/** Whoever asks for a lock, and one who is in the way. */
export interface SeenLockWait {
  readonly by: string
  readonly lock: string
  readonly blocker: string
  readonly blockingLock: string
}

/** A lock that somebody waits for. */
export interface SeenRowLock {
  readonly id: string
  readonly mode: string
  readonly isRow: boolean
  readonly database: string
  readonly table: string
  readonly index: string | undefined
  readonly data: string | undefined
}

/** A wait for something that is no lock of InnoDB: of MySQL alone. */
export interface SeenMetadataWait {
  readonly pid: number
  readonly type: string
  readonly database: string | undefined
  readonly name: string | undefined
  readonly wanted: string
  readonly by: number
  readonly held: string
  readonly isGranted: boolean
}

/** Everything that was seen. */
export interface SeenServer {
  readonly at: number
  /** When the server was started. */
  readonly startedAt: number
  readonly database: string | undefined
  readonly connections: readonly SeenConnection[]
  readonly transactions: readonly SeenTransaction[]
  readonly waits: readonly SeenLockWait[]
  readonly locks: readonly SeenRowLock[]
  readonly metadataWaits: readonly SeenMetadataWait[]
  readonly capped: boolean
}

/** More than this is not read; what is waited for comes first. */
export const mostLocks = 10_000
