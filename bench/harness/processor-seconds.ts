import { readdirSync, readFileSync } from 'node:fs'

/** Seconds of a processor that were used so far. */
export interface ProcessorSeconds {
  /** By a server with all its sessions. Of one that has ended, what it had used when it was last looked at. */
  server(): number
  /** By this process. */
  client(): number
}

/** `undefined` where the system does not tell. */
export function processorSeconds(postmaster: number): ProcessorSeconds | undefined {
  if (secondsOf(postmaster) === undefined) return undefined
  const seen = new Map<number, number>()
  return {
    server() {
      for (const pid of [postmaster, ...childrenOf(postmaster)]) {
        const seconds = secondsOf(pid)
        if (seconds !== undefined) seen.set(pid, seconds)
      }
      return [...seen.values()].reduce((sum, seconds) => sum + seconds, 0)
    },
    client() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  }
}

/** Of one process with all of its threads that have not ended. */
export function secondsOfEachThread(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, thread) => sum + (secondsOf(Number(thread)) ?? 0), 0)
  } catch {
    return undefined
  }
}

/** Of one thread of one process; a process of PostgreSQL has one. Linux counts nanoseconds on a processor, as the first number. */
export function secondsOf(pid: number): number | undefined {
  const line = read(`/proc/${pid}/schedstat`)
  return line === undefined ? undefined : Number(line.split(' ')[0]) / 1e9
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const stat = read(`/proc/${pid}/stat`)
      if (stat === undefined) return false
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
    })
}

/** A process may end while we look. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
