import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Redeem } from '../src/coupon.ts'
import type { Answered, Asked, Way } from './worker.ts'

export interface Worker {
  redeem(request: Redeem): Promise<Answered['answer']>
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('./worker.ts', import.meta.url))

/** Starts a process; resolves once it can redeem. */
export async function startWorker(databaseUrl: string, way: Way): Promise<Worker> {
  const child = fork(program, {
    env: { ...process.env, DATABASE_URL: databaseUrl, WAY: way },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const failed = ended.then(([code]) => {
    throw new Error(`the process ended with status ${String(code)}`)
  })
  // Also rejects when the process is stopped on purpose, and then nobody listens.
  failed.catch(() => undefined)
  await Promise.race([once(child, 'message'), failed])
  const waiting = new Map<number, (answer: Answered['answer']) => void>()
  child.on('message', ({ id, answer }: Answered) => waiting.get(id)?.(answer))
  return {
    async redeem(request) {
      const id = waiting.size
      const answered = new Promise<Answered['answer']>((resolve) => {
        waiting.set(id, resolve)
      })
      child.send({ id, request } satisfies Asked)
      return await Promise.race([answered, failed])
    },
    async stop() {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}
