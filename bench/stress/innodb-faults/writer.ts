/** The program of a process that writes under a lock and is killed meanwhile; see killed-writers.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import { lockKey } from '../../../packages/holdfast/src/core/locks/lock-key.ts'
import { createHoldfast } from '../../../packages/holdfast/src/mysql.ts'
import { faultKey, insertOf, openFaultClient } from './fault-client.ts'
import type { WriterSetup, WriterTask } from './killed-writers.ts'

const { url, client: name, way } = JSON.parse(process.argv[2] ?? '{}') as WriterSetup
const client = openFaultClient(name, url, 2)
const hf = createHoldfast(client.driver)
const told = (id: string): void => void process.send?.({ done: id })

const writes: Readonly<Record<typeof way, (id: string) => Promise<void>>> = {
  async guard(id) {
    await hf.guard(
      lockKey(...faultKey),
      async (tx) => {
        for (const part of [1, 2]) await client.send(tx, insertOf(id, 1, part))
      },
      { retry: false },
    )
    told(id)
  },
  /** Controls: told before COMMIT was answered; without a transaction. */
  async 'told before commit'(id) {
    await hf.guard(lockKey(...faultKey), async (tx) => {
      for (const part of [1, 2]) await client.send(tx, insertOf(id, 1, part))
      told(id)
      // Until the other process has it.
      await pause(20)
    })
  },
  async 'no transaction'(id) {
    for (const part of [1, 2]) await client.root(insertOf(id, 1, part))
    told(id)
  },
}

process.on('message', ({ id }: WriterTask) => {
  void writes[way](id).catch((error: unknown) => process.send?.({ failed: String(error) }))
})
// What is known of the server and its table is known, and a connection is there.
await hf.guard(lockKey(...faultKey), async () => undefined)
process.send?.({ ready: true })
