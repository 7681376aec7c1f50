/** The program of one process of callers of a limiter; see ../scenarios/peers.ts. */
import { barrier } from '@holdfast/testkit'
import { randomFor } from '../harness/random.ts'
import { joinTeam } from '../harness/team-member.ts'
import { type Limiter, type LimiterName, limiters, type Places } from './limiters.ts'

export interface PeerSetup {
  readonly places: Places
  readonly callers: number
  readonly connections: number
  readonly limit: number
}

export interface PeerRound {
  readonly limiter: LimiterName
  readonly key: string
  readonly callsPerCaller: number
  /** Points a call costs at most; 1 makes all calls the same. */
  readonly dearest: number
}

export interface PeerReport {
  /** Points of the calls that were granted. */
  readonly granted: number
  readonly errors: readonly string[]
}

joinTeam<PeerSetup, PeerRound, PeerReport>(async (setup, member) => {
  const opened = new Map<LimiterName, Limiter>()
  return {
    async ready({ limiter: name, key, callsPerCaller, dearest }) {
      const limiter =
        opened.get(name) ?? (await limiters[name](setup.places, setup.limit, setup.connections))
      opened.set(name, limiter)
      // Connections and plans are there before the race begins.
      await limiter.consume(`warm-up-${member}`, 1)
      const together = barrier(setup.callers)
      let granted = 0
      const errors: string[] = []
      const caller = async (index: number): Promise<void> => {
        const random = randomFor(member, index)
        await together()
        for (let call = 0; call < callsPerCaller; call += 1) {
          const points = random.integer(1, dearest)
          try {
            if (await limiter.consume(key, points)) granted += points
          } catch (error) {
            errors.push(String(error))
          }
        }
      }
      return async () => {
        await Promise.all(Array.from({ length: setup.callers }, (_, index) => caller(index)))
        return { granted, errors }
      }
    },
    async close() {
      for (const limiter of opened.values()) await limiter[Symbol.asyncDispose]()
    },
  }
})
