/** One process that receives webhooks, and may be killed while it works on them; see once.ts. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { FromReceiver, ToReceiver } from './once.ts'
import { type OnceStore, openOnceStore } from './once-store.ts'

let store: OnceStore<unknown>

process.on('disconnect', () => process.exit(0))
process.on('message', (message: ToReceiver) => {
  handle(message).then(
    (answer) => process.send?.(answer),
    (error: unknown) => process.send?.({ kind: 'answers', answers: [], trouble: String(error) }),
  )
})

async function handle(message: ToReceiver): Promise<FromReceiver> {
  if (message.kind === 'open') {
    store = await openOnceStore(message.url, message.connections, message.weakened)
    return { kind: 'ready' }
  }
  const answers = await Promise.all(
    Array.from({ length: message.duplicates }, (_, at) => receive(message.webhook, at)),
  )
  return { kind: 'answers', answers }
}

/** Half of them in a transaction of their own, half in one of the application's. */
async function receive(webhook: string, at: number): Promise<string> {
  const body = async (tx: unknown): Promise<string> => {
    const id = randomUUID()
    await store.effect(tx, webhook, id)
    await pause(2)
    return id
  }
  if (at % 2 === 0) return await store.once(webhook, body)
  return await store.transaction(async (tx) => await store.onceIn(tx, webhook, body))
}
