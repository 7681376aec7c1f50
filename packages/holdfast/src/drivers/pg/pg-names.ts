import { preparedAs } from '../../engines/postgres/tx/session.ts'
import type { PrepareMode } from '../parts/prepare-mode.ts'
import { pipelineMessage } from './pg-wire.ts'
import { sendOnWire, type WireClient } from './pg-wire-query.ts'

/**
 * Whether statements on a connection may have names. One that leads straight to the server is known by its process id:
 * a pooler makes one up, because its clients have no server process of their own. Through a pooler they may, if we were
 * asked to and it keeps track of names. `undefined`: the connection has to be asked, which is for outside of a
 * transaction.
 */
export function mayHaveNames(
  mode: PrepareMode,
  client: WireClient,
  pid: unknown,
): boolean | undefined {
  if (mode === 'never') return false
  if (Number(pid) === client.processID) return true
  return mode === 'tracked' ? undefined : false
}

const probe = 'holdfast_probe'

/** A pooler that keeps track of names gives the server others than its clients', so the server does not know ours. */
export async function tracksNames(client: WireClient): Promise<boolean> {
  const { text, values, columns = [] } = preparedAs(probe)
  // One message, which no pooler spreads over several servers.
  const message = pipelineMessage({ name: probe, text, values, known: false, once: true })
  try {
    const { rows } = await sendOnWire(client, message, { columns })
    return rows[0]?.['seen'] === '0'
  } catch {
    // What is wrong with the connection is seen by whoever uses it next.
    return false
  }
}
