import { setImmediate } from 'node:timers/promises'
import type { GatedConnection } from '../../gate/gated-connection.ts'

/** How long a client may take to finish what it has under way between two runs. */
const finishMs = 1000

/**
 * Ends the sessions of these connections, does something without them, and gives each client a new one. Clients notice
 * nothing: what they send meanwhile waits. One that does not come to rest is told that its session is over.
 */
export async function withoutSessions(
  connections: readonly GatedConnection[],
  work: () => Promise<void>,
): Promise<void> {
  await until(finishMs, () => connections.every(({ phase }) => phase === 'idle' || isOver(phase)))
  for (const connection of connections) {
    const { phase } = connection
    // A client that waits for its first session hears that there is none.
    if (phase !== 'starting') connection.freeze()
    connection.hangUp()
    if (phase !== 'idle') connection.bury()
  }
  await untilClosed(connections, finishMs)
  try {
    await work()
  } finally {
    await Promise.all(connections.map((connection) => connection.revive()))
  }
}

export async function untilClosed(
  connections: readonly GatedConnection[],
  limitMs: number,
): Promise<void> {
  await until(limitMs, () => connections.every(({ phase }) => phase === 'closed'))
}

function isOver(phase: GatedConnection['phase']): boolean {
  return phase === 'closing' || phase === 'closed'
}

async function until(limitMs: number, isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!isSo() && performance.now() < deadline) await setImmediate()
}
