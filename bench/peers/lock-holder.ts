/** Spends from one wallet and stands between its check and its write until it is told to go on; see standing-still.ts. */
import { once } from 'node:events'
import { type KeeperName, keepers, type KeeperTerms, type LockPlaces } from './lock-keepers.ts'

export interface HolderTask {
  readonly keeper: KeeperName
  readonly places: LockPlaces
  readonly terms: KeeperTerms
  readonly wallet: string
}

export type HolderNews = 'between' | { readonly granted: boolean; readonly refusedBy?: string }

const tell = (news: HolderNews): void => void process.send?.(news)
const { keeper: name, places, terms, wallet } = JSON.parse(process.argv[2] ?? '{}') as HolderTask
process.once('disconnect', () => process.exit(0))
const keeper = await keepers[name](places, terms)
try {
  const granted = await keeper.spend(wallet, async () => {
    tell('between')
    await once(process, 'message')
  })
  tell({ granted })
} catch (error) {
  tell({ granted: false, refusedBy: String((error as { code?: string }).code ?? error) })
}
