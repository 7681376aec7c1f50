/** What the service is told by its environment. */
interface Settings {
  readonly databaseUrl: string
  /** 0 takes any free port. */
  readonly port: number
  /** Off only to show the race. */
  readonly guarded: boolean
  /** How long an upload queues behind others of the same user before it is told to come back. */
  readonly lockWaitMs: number
}

const { DATABASE_URL, PORT, GUARD, WAIT_MS } = process.env

if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')

export const settings: Settings = {
  databaseUrl: DATABASE_URL,
  port: Number(PORT ?? 3000),
  guarded: GUARD !== 'off',
  lockWaitMs: Number(WAIT_MS ?? 2_000),
}
