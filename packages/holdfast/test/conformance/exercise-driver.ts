import { describe } from 'vitest'
import { claims } from './suite/claims.ts'
import { bodyEndings } from './suite/endings.ts'
import { errorShapes } from './suite/error-shapes.ts'
import { exclusion } from './suite/exclusion.ts'
import type { Harness } from './suite/harness.ts'
import { leases } from './suite/leases.ts'
import { leftOpen } from './suite/left-open.ts'
import { ledger } from './suite/ledger.ts'
import { lostConnections } from './suite/lost-connections.ts'
import { once } from './suite/once.ts'
import { refusals } from './suite/refusals.ts'
import { roundTrips } from './suite/round-trips.ts'
import { rateLimit } from './suite/rate-limit.ts'
import { schedule } from './suite/schedule.ts'
import { promises } from './suite/promises.ts'
import { type Setting, setting } from './suite/setting.ts'
import { statements } from './suite/statements.ts'
import { transactions } from './suite/transactions.ts'
import { waiting } from './suite/waiting.ts'

/**
 * The conformance suite: what a client must do, and what it may not do, to carry Holdfast. It is
 * the real definition of `Driver`; a file per client builds the harness and adds what only that
 * client has. Of a driver that is not ours nothing is in docs/drivers.md.
 */
export function exerciseDriver<Tx, H extends Harness<Tx>>(
  name: string,
  open: (url: string) => Promise<H & Harness<Tx>>,
  lookAlikes: readonly string[],
  isDocumented = true,
): Setting<Tx, H> {
  const at = setting<Tx, H>(open)
  const parts: Record<string, () => void> = {
    statements: () => statements(at),
    transactions: () => transactions(at),
    endings: () => bodyEndings(at),
    'left open': () => leftOpen(at),
    refusals: () => refusals(at, lookAlikes),
    exclusion: () => exclusion(at),
    waiting: () => waiting(at),
    'round trips': () => roundTrips(at, name, isDocumented),
    ledger: () => ledger(at),
    leases: () => leases(at),
    claims: () => claims(at),
    'rate limit': () => rateLimit(at),
    schedule: () => schedule(at),
    once: () => once(at),
    'error shapes': () => errorShapes(at),
    'lost connections': () => lostConnections(at),
    ...(isDocumented && { promises: () => promises(at, name) }),
  }
  describe.each(Object.entries(parts))(`${name}: %s`, (_, tests) => {
    tests()
  })
  return at
}
