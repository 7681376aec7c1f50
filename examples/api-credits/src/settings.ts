import type { Duration } from './plan.ts'

/** What the service is told by its environment. */
interface Settings {
  readonly databaseUrl: string
  /** 0 takes any free port. */
  readonly port: number
  /** `naive` only to show what goes wrong. */
  readonly way: 'holdfast' | 'naive'
  /** How long a reservation lives if nobody ends it. */
  readonly holdTtl: Duration
  /** How soon a request can be worked on again if its process has died. */
  readonly leaseTtl: Duration
  /** How long the model thinks. */
  readonly modelMs: number
}

const { DATABASE_URL, PORT, WAY, HOLD_TTL, LEASE_TTL, MODEL_MS } = process.env

if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')

export const settings: Settings = {
  databaseUrl: DATABASE_URL,
  port: Number(PORT ?? 3000),
  way: WAY === 'naive' ? 'naive' : 'holdfast',
  holdTtl: (HOLD_TTL ?? '2 min') as Duration,
  leaseTtl: (LEASE_TTL ?? '10 s') as Duration,
  modelMs: Number(MODEL_MS ?? 2_000),
}
