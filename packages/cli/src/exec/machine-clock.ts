import { uptime } from 'node:os'

/**
 * Milliseconds on a clock that every process of this machine reads alike. On Linux it goes on while the machine is
 * suspended, which timers do not notice: a lease expires all the same.
 */
export function machineMs(): number {
  return process.platform === 'linux'
    ? uptime() * 1_000
    : Number(process.hrtime.bigint() / 1_000n) / 1_000
}
