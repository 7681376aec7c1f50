import type { Guard } from './guard.ts'
import { processesIn } from './processes-in.ts'
import { sendSignal } from '../send-signal.ts'
import { waitUntil } from '../wait-until.ts'

/** SIGKILL to the server and all its children at once, so that none of them sees another one die. */
export async function killAll(guard: Guard): Promise<void> {
  // A postmaster that stands still starts no further children.
  sendSignal(guard.pid(), 'SIGSTOP')
  for (const pid of processesIn(guard.folder)) sendSignal(pid, 'SIGKILL')
  sendSignal(guard.pid(), 'SIGKILL')
  await untilGone(guard)
}

/** Waits for the server and its children, who notice by themselves that it is gone, but not if they stand still. */
export async function untilGone(guard: Guard): Promise<void> {
  await waitUntil(
    'the server and its children have ended',
    () => {
      if (guard.ended() === undefined) return undefined
      const left = processesIn(guard.folder)
      for (const pid of left) sendSignal(pid, 'SIGCONT')
      return left.length === 0 ? true : undefined
    },
    { limitMs: 30_000 },
  )
}
