import { setTimeout as pause } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { deliveryMs } from './settings.ts'

/** A message as it is in the table. */
export interface Message {
  readonly id: string
  readonly order_id: number
}

/** The slow part: a call to somebody else. */
export async function prepare(): Promise<void> {
  process.send?.('working')
  await pause(deliveryMs)
}

/** The part that must happen once. */
export async function charge(client: ClientBase, message: Message): Promise<void> {
  await client.query('INSERT INTO charge SELECT $1, total_cents FROM orders WHERE id = $2', [
    message.id,
    message.order_id,
  ])
}
