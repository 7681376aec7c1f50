import { legacyKey } from '../../../src/core/locks/lock-key.ts'
import type { LockKey, LockMode, WantedLock } from '../../../src/core/locks/wanted-lock.ts'
import {
  lockAnswer,
  type LockRequest,
  lockStatement,
} from '../../../src/engines/postgres/locks/locks.ts'
import type { LockAnswer } from '../../../src/locks/engine.ts'
import type { Session } from './session.ts'

/** Keys, exclusively unless told otherwise. */
export function wanted(keys: readonly LockKey[], mode: LockMode = 'exclusive'): WantedLock[] {
  return keys.map((key) => ({ key, mode }))
}

/** Keys by number, so that a test can say what comes first. */
export function numbered(...ids: readonly (number | bigint)[]): WantedLock[] {
  return wanted(ids.map((id) => legacyKey.bigint(id)))
}

/** A request with a limit no test waits for, unless it says so. */
export function lockRequest(
  locks: readonly WantedLock[],
  other: Partial<LockRequest> = {},
): LockRequest {
  return {
    wanted: locks,
    attempt: false,
    limitMs: 30_000,
    yields: false,
    budgetMs: undefined,
    label: undefined,
    allowStaleSnapshot: false,
    first: false,
    brief: false,
    ...other,
  }
}

/** Runs our lock statement and reads its answer. */
export async function take(session: Session, request: LockRequest): Promise<LockAnswer> {
  return lockAnswer(await session.run(lockStatement(request)))
}
