/** The program of one process of callers that spend from one wallet; see ../scenarios/peer-locks.ts. */
import { barrier } from '@holdfast/testkit'
import { joinTeam } from '../harness/team-member.ts'
import {
  type Keeper,
  type KeeperName,
  keepers,
  type KeeperTerms,
  type LockPlaces,
} from './lock-keepers.ts'

export interface LockSetup {
  readonly places: LockPlaces
  readonly callers: number
  readonly terms: KeeperTerms
}

export interface LockRound {
  readonly keeper: KeeperName
  readonly wallet: string
  /** Another wallet, for what is not to be part of the race. */
  readonly warmUp: string
}

export interface LockReport {
  readonly granted: number
  readonly errors: readonly string[]
}

joinTeam<LockSetup, LockRound, LockReport>(async ({ places, callers, terms }) => {
  const opened = new Map<KeeperName, Keeper>()
  return {
    async ready({ keeper: name, wallet, warmUp }) {
      const keeper = opened.get(name) ?? (await keepers[name](places, terms))
      opened.set(name, keeper)
      await keeper.spend(warmUp)
      const together = barrier(callers)
      let granted = 0
      const errors: string[] = []
      const caller = async (): Promise<void> => {
        await together()
        try {
          if (await keeper.spend(wallet)) granted += 1
        } catch (error) {
          errors.push(String(error))
        }
      }
      return async () => {
        await Promise.all(Array.from({ length: callers }, caller))
        return { granted, errors }
      }
    },
    async close() {
      for (const keeper of opened.values()) await keeper[Symbol.asyncDispose]()
    },
  }
})
