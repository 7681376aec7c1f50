import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A limit on the processor time of some processes and of all that they start. */
export interface ProcessorShare {
  /** Takes the limit away. The processes go back to where they were, or have ended. */
  lift(): void
}

/** Short, so that a server that is out of time goes on soon; a quota below 1,000 is refused by Linux. */
const periodUs = 20_000

/**
 * Gives processes a share of one processor: 0.1 is a tenth, whatever else the machine does. Linux and a
 * control group that may be written to are needed; `undefined` where there is none.
 */
export function limitProcessor(
  name: string,
  pids: readonly number[],
  share: number,
): ProcessorShare | undefined {
  const root = rootGroup()
  if (root === undefined) return undefined
  const group = join(root.path, `holdfast-${process.pid}-${name}`)
  const quotaUs = String(Math.round(share * periodUs))
  try {
    mkdirSync(group)
    if (root.version === 1) {
      writeFileSync(join(group, 'cpu.cfs_period_us'), String(periodUs))
      writeFileSync(join(group, 'cpu.cfs_quota_us'), quotaUs)
    } else {
      writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${periodUs}`)
    }
    move(pids, group)
  } catch {
    return undefined
  }
  return {
    lift() {
      move(readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean), root.path)
      rmdirSync(group)
    },
  }
}

function rootGroup(): { readonly version: 1 | 2; readonly path: string } | undefined {
  const old = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/cpu,cpuacct'].find(
    (path) => existsSync(join(path, 'cpu.cfs_quota_us')) || existsSync(join(path, 'cgroup.procs')),
  )
  if (old !== undefined) return { version: 1, path: old }
  const path = '/sys/fs/cgroup'
  const enabled = join(path, 'cgroup.subtree_control')
  if (!existsSync(enabled) || !readFileSync(enabled, 'utf8').split(/\s/).includes('cpu')) {
    return undefined
  }
  return { version: 2, path }
}

function move(pids: readonly (number | string)[], group: string): void {
  for (const pid of pids) {
    try {
      writeFileSync(join(group, 'cgroup.procs'), String(pid))
    } catch (error) {
      // It has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}
