import { lockKey } from '../../core/locks/lock-key.ts'
import type { LockName } from './label.ts'

/** Namespaces of the locks that Holdfast takes for itself, and what is done under them. */
const meanings: Readonly<Record<string, string>> = {
  'holdfast.schema': 'The schema is being installed or upgraded; other installers wait.',
  'holdfast-leader': 'Whoever holds it leads, for as long as its session lasts.',
  'holdfast-once': 'Work is being done once; duplicates of it wait for its result.',
  'holdfast-turn': 'Rows of one key are being claimed, by one worker at a time.',
}

/** What is done under a lock of Holdfast's own; `undefined` for everybody else's. */
export function meaningOf(namespace: string): string | undefined {
  return Object.hasOwn(meanings, namespace) ? meanings[namespace] : undefined
}

/** What installers of a schema lock. */
export function installerLock(schema: string): LockName & { readonly id: string } {
  return named('holdfast.schema', schema)
}

/** What a leader by session locks; `undefined` if a row says what no leader can be called. */
export function leaderLockName(
  scope: string,
  name: string,
): (LockName & { readonly id: string }) | undefined {
  return scope === '' || name === '' ? undefined : named('holdfast-leader', scope, name)
}

function named(namespace: string, ...parts: readonly string[]): LockName & { readonly id: string } {
  const { lock, name } = lockKey(namespace, ...parts)
  return { id: `1:${lock.id}`, name, namespace }
}
