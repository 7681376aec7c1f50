import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { machineMs } from './machine-clock.ts'

const lookEveryMs = 20
/** From then on, what is left of a killed group is asked whether it is more than a zombie. */
const reapedWithinMs = 500

/** Sends a signal to all processes of a group. False if there are none. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch (error) {
    // EPERM: they are there, and became another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * SIGTERM now, SIGKILL at `killAt`, which may come nearer meanwhile. Resolves when nothing of the group runs. A stopped
 * process is woken, or it could not heed the SIGTERM.
 */
export async function endGroup(group: number, killAt: () => number): Promise<void> {
  let killedAt: number | undefined
  if (machineMs() < killAt()) {
    signalGroup(group, 'SIGTERM')
    signalGroup(group, 'SIGCONT')
  }
  while (signalGroup(group, 0)) {
    if (killedAt === undefined && machineMs() >= killAt()) {
      signalGroup(group, 'SIGKILL')
      killedAt = machineMs()
    }
    if (killedAt !== undefined && machineMs() > killedAt + reapedWithinMs && !runs(group)) return
    await pause(lookEveryMs)
  }
}

/** Whether anything but zombies is left: where nobody reaps orphans, as in many containers, they stay for ever. */
function runs(group: number): boolean {
  // Elsewhere than on Linux there is nowhere to look, and nothing survives SIGKILL for long.
  if (process.platform !== 'linux') return false
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [state = '', , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return Number(pgrp) === group && !'ZX'.includes(state)
      } catch {
        return false
      }
    })
}
