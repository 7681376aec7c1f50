import { createMoves, type Moves, type MovesOptions, type MovingPrimary } from 'holdfast/shards'
import type { PoolClient } from 'pg'
import type { Call } from './command.ts'
import { checkedPeerUrl, checkedUrl } from './settings/database-url.ts'
import { Failed, failureOf, Misuse } from './failure.ts'

/** The primaries that the configuration file names, open for as long as `use` runs. */
export async function withPrimaries<T>(
  { config }: Pick<Call, 'config'>,
  use: (primaries: Readonly<Record<string, MovingPrimary<PoolClient>>>) => Promise<T>,
): Promise<T> {
  const settings = Object.entries(config.shards ?? {})
  if (settings.length === 0) {
    throw new Misuse(
      'shards needs the primaries: write them into the configuration file as shards, by their names.',
    )
  }
  const { withDatabase } = await import('./open-database.ts')
  const open = async (
    at: number,
    opened: Readonly<Record<string, MovingPrimary<PoolClient>>>,
  ): Promise<T> => {
    const next = settings[at]
    if (next === undefined) return await use(opened)
    const [name, setting] = next
    const { url, peerUrl = url } = typeof setting === 'string' ? { url: setting } : setting
    checkedUrl(url, `shards.${name} of the configuration file`)
    const peer = `shards.${name}${peerUrl === url ? '' : '.peerUrl'} of the configuration file`
    checkedPeerUrl(peerUrl, peer)
    return await withDatabase(url, (driver) =>
      open(at + 1, { ...opened, [name]: { driver, connection: peerUrl } }),
    )
  }
  return await open(0, {})
}

/** Asks each of them something, so that who does not answer is told by name. @throws Failed */
export async function assertReachable(
  primaries: Readonly<Record<string, MovingPrimary<PoolClient>>>,
): Promise<void> {
  await Promise.all(
    Object.entries(primaries).map(async ([name, { driver }]) => {
      try {
        await driver.transaction(async () => undefined, { scopes: [] })
      } catch (error) {
        const failure = failureOf(error)
        throw new Failed({ ...failure, message: `Primary ${name}: ${failure.message}` })
      }
    }),
  )
}

/** Moves between them. */
export async function withMoves<T>(
  call: Pick<Call, 'config' | 'schema'>,
  options: Omit<MovesOptions, 'schema'>,
  use: (moves: Moves) => Promise<T>,
): Promise<T> {
  const schema = call.schema === undefined ? {} : { schema: call.schema }
  return await withPrimaries(call, (primaries) =>
    use(createMoves(primaries, { ...options, ...schema })),
  )
}
