import { type Driver, hasSessions } from '../core/driver.ts'
import { isHoldfastError } from '../core/errors.ts'
import { serverClock } from '../engines/postgres/health/server.ts'
import { whichBackend } from '../engines/postgres/tx/session.ts'
import { postgresLocks } from '../engines/postgres/locks/taking.ts'
import { selfTest } from '../locks/self-test.ts'
import { finding, type HealthFinding, notChecked } from './finding.ts'
import { lengthOf } from './setting-value.ts'

/** The versions our suites run on. */
const oldest = 15
const newest = 18

/** What `version()` says: a fork says something of its own, and may still call itself PostgreSQL. */
export function examineVersion(version: string): HealthFinding[] {
  const [, digits, rest = ''] = /^PostgreSQL (\d+)(\S*)/.exec(version) ?? []
  const short = version.split(/[ ,]/).slice(0, 2).join(' ')
  const major = Number(digits ?? Number.NaN)
  if (major < oldest) {
    return [
      finding(
        'server-too-old',
        'server',
        `is ${short}, and Holdfast needs PostgreSQL ${oldest} or later.`,
        `Upgrade the server to PostgreSQL ${newest}.`,
      ),
    ]
  }
  if (major <= newest && /^(\.\d+)?$/.test(rest)) return []
  return [
    finding(
      'server-untested',
      'server',
      `is ${short}, on which Holdfast was not tested: that was PostgreSQL ${oldest} to ${newest}, released.`,
      'Run your tests against it, and locks.selfTest() at start-up.',
    ),
  ]
}

export const standby: HealthFinding = finding(
  'standby',
  'server',
  'is a standby: it takes no writes, and its locks exclude nobody on the primary.',
  'Connect to the primary: its own address, the writer endpoint, or target_session_attrs=read-write.',
)

/** Whether two connections exclude each other. */
export async function examineLocks<Tx>(driver: Driver<Tx>): Promise<HealthFinding[]> {
  try {
    await selfTest(postgresLocks, driver)
    return []
  } catch (error) {
    if (isHoldfastError(error, 'ENGINE_LOCKS_ARE_STUBS', 'ENGINE_ONE_SESSION')) {
      return [
        finding(
          'locks-are-stubs',
          'server',
          'gave the same advisory lock to two transactions at once: its locks do nothing.',
          'Use PostgreSQL itself, or row locks and constraints (docs/poolers.md, Engines).',
        ),
      ]
    }
    if (!isHoldfastError(error, 'SELF_TEST_INCONCLUSIVE')) throw error
    return [
      notChecked(
        'connection',
        'server',
        'whether its locks are real takes two connections, and the pool has one.',
        'Give the pool two connections.',
      ),
    ]
  }
}

/**
 * Whether a pooler stands between. Only clients that can keep a connection are asked: for others there is
 * nothing that it could break.
 */
export async function examinePooler<Tx>(driver: Driver<Tx>): Promise<HealthFinding[]> {
  if (!hasSessions(driver)) return []
  const session = await driver.session()
  try {
    const [row] = await session.query(whichBackend)
    if (session.claimedPid === undefined || Number(row?.['pid']) === session.claimedPid) return []
  } finally {
    await session.end()
  }
  return [
    finding(
      'pooler',
      'connection',
      'leads through a pooler: leaders by session are refused and LISTEN hears nothing; all else works.',
      'Nothing, or a second driver with a direct URL for leaders by session and for workers that listen.',
    ),
  ]
}

const samples = 3
const toleratedMs = 1_000

/**
 * How far the two clocks are apart: the server's against the middle of the round trip, of the fastest of
 * a few. What the round trip leaves open is not held against anybody.
 */
export async function examineClock<Tx>({ alone }: Driver<Tx>): Promise<HealthFinding[]> {
  let best = { offsetMs: 0, doubtMs: Number.POSITIVE_INFINITY }
  for (let sample = 0; sample < samples; sample += 1) {
    const sentAt = Date.now()
    const [row] = await alone.query(serverClock)
    const gotAt = Date.now()
    const doubtMs = (gotAt - sentAt) / 2
    const offsetMs = Number(row?.['ms']) - (sentAt + doubtMs)
    if (doubtMs < best.doubtMs) best = { offsetMs, doubtMs }
  }
  const { offsetMs, doubtMs } = best
  if (Math.abs(offsetMs) - doubtMs <= toleratedMs) return []
  return [
    finding(
      'clock-differs',
      'clock',
      `of this machine is ${lengthOf(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'} the server's. Nothing in Holdfast depends on it, but logs will not fit together.`,
      'Let both machines take their time by NTP.',
    ),
  ]
}
