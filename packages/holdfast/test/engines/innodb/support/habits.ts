import { expect } from 'vitest'
import type { ClientName } from './innodb-clients.ts'

/** Calls of a body's handle that would begin or end a transaction, besides statements. */
type Call = 'commit' | 'rollback' | 'beginTransaction' | 'release'

/** What is particular about a client. */
interface Habits {
  readonly calls: readonly Call[]
  /** What a handle says when its body has returned. */
  readonly ended: object
}

const plain: Habits = {
  calls: ['commit', 'rollback', 'beginTransaction', 'release'],
  ended: { code: 'TX_HANDLE_ENDED' },
}

export const habitsOf: Readonly<Record<ClientName, Habits>> = {
  mysql2: plain,
  mariadb: plain,
  // What it hands to a callback has none of them, and refuses by itself.
  drizzle: { ...plain, calls: [] },
  typeorm: {
    calls: ['commit', 'rollback', 'release'],
    ended: { message: expect.stringContaining('was already released') },
  },
  kysely: { calls: [], ended: { message: 'Transaction is already committed' } },
}
