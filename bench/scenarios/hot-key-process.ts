/** The program of one of the processes that want the same key; see hot-key.ts. */
import { joinTeam } from '../harness/team-member.ts'
import { openCrowd, type Wait } from './hot-key-crowd.ts'

export interface ProcessOrder {
  readonly ms: number
  /** By the number of the process. */
  readonly queue: readonly boolean[]
}

joinTeam<{ readonly url: string }, ProcessOrder, Wait[]>(async ({ url }, index) => {
  const crowd = await openCrowd(url)
  return {
    ready: async ({ ms, queue }) => {
      await crowd.call(true)
      return async () => await crowd.rush(ms, queue[index] ?? true)
    },
    close: async () => await crowd[Symbol.asyncDispose](),
  }
})
