/** What a process is told by its environment. */
interface Settings {
  readonly databaseUrl: string
  /** `naive` only to show what goes wrong. */
  readonly way: 'holdfast' | 'naive'
  /** How long a night is; a demonstration has no time for real ones. */
  readonly nightMs: number
}

const { DATABASE_URL, WAY, NIGHT_MS } = process.env

if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')

export const settings: Settings = {
  databaseUrl: DATABASE_URL,
  way: WAY === 'naive' ? 'naive' : 'holdfast',
  nightMs: Number(NIGHT_MS ?? 86_400_000),
}
