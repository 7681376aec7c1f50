import { randomUUID } from 'node:crypto'
import type { Actor, Stage } from '../crew/actor.ts'
import type { Answer } from '../crew/recorder.ts'

/** A new webhook so often; everybody gets it, in all processes. */
const slotMs = 100

/** Webhooks that arrive several times, at once and later. */
export const onceActor: Actor = {
  workload: 'once',
  copies: 2,
  async act(stage) {
    const { recorder, random, stopping } = stage
    while (!stopping.aborted) {
      const late = random.integer(0, 9) === 0 ? random.integer(1, 5) : 0
      const key = `hook-${Math.max(0, stage.slot(slotMs) - late)}`
      const joined = random.integer(0, 1) === 1
      await recorder.persist({ operation: 'receive', key }, () => receive(stage, key, joined))
      await stage.pace()
    }
  },
}

async function receive<Tx>({ app }: Stage<Tx>, key: string, joined: boolean): Promise<Answer> {
  const body = async (tx: Tx): Promise<string> => {
    const id = randomUUID()
    await app.query(tx, 'INSERT INTO hook_effect (hook, id) VALUES ($1::text, $2::text)', [key, id])
    return id
  }
  const { result, replayed } = joined
    ? await app.hf.transaction((tx) => app.hf.once(tx, key, body))
    : await app.hf.once(key, body)
  return { outcome: 'ok', value: { result, replayed } }
}
