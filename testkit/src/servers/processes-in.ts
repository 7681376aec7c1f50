import { readdirSync, readlinkSync } from 'node:fs'

/**
 * The processes that work in a folder: a server with all its children, whoever their parent is by now.
 * Only Linux tells; elsewhere there are none to see.
 */
export function processesIn(folder: string): number[] {
  let pids: number[] = []
  try {
    pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
  return pids.filter((pid) => {
    try {
      return pid !== process.pid && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    } catch {
      return false // it has ended meanwhile, or it is a zombie
    }
  })
}
