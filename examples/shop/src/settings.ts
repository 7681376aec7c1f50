/** What the service is told by its environment. */
interface Settings {
  readonly databaseUrl: string
  /** 0 takes any free port. */
  readonly port: number
  /** Off only to show the races. */
  readonly ledger: boolean
}

const { DATABASE_URL, PORT, LEDGER } = process.env

if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')

export const settings: Settings = {
  databaseUrl: DATABASE_URL,
  port: Number(PORT ?? 3000),
  ledger: LEDGER !== 'off',
}
