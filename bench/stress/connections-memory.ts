import { readFile } from 'node:fs/promises'

interface Use {
  readonly bytes: number
  readonly connections: number
}

/** Peaks of each side, and how many connections it had. */
export interface Memory {
  readonly pgbouncer: Use
  /** Of the largest process of clients, on top of what it had before its first connection. */
  readonly clients: Use
  /** Of all its processes, what they share counted once. */
  readonly postgres: Use
  /** Of the clients: the peak in the second half of the work against the one in the first. */
  readonly laterShare: number
}

const kilobyte = 1_024
const megabyte = kilobyte ** 2

/** Most that a side may take: so much at the start, and so much for each of its connections. */
const allowances = {
  pgbouncer: { baseBytes: 16 * megabyte, perConnectionBytes: 8 * kilobyte },
  // A pool, a client of `pg` and all rooms for each, and what V8 has not collected yet.
  clients: { baseBytes: 150 * megabyte, perConnectionBytes: 192 * kilobyte },
  postgres: { baseBytes: 200 * megabyte, perConnectionBytes: 16 * megabyte },
} as const
/** It does not grow with the time, once it is more than what any process has in the beginning. */
const mostLaterShare = 1.5

/** What crosses its bound, one sentence each. */
export function tooMuchMemory(memory: Memory): string[] {
  const sides = ['pgbouncer', 'clients', 'postgres'] as const
  return [
    ...sides.flatMap((side) => {
      const { bytes, connections } = memory[side]
      const { baseBytes, perConnectionBytes } = allowances[side]
      const bound = baseBytes + perConnectionBytes * connections
      if (bytes <= bound) return []
      const [took, allowed] = [megabytes(bytes), megabytes(bound)]
      return [`${side} took ${took} for ${connections} connections, ${allowed} are allowed`]
    }),
    ...(memory.clients.bytes > allowances.clients.baseBytes && memory.laterShare > mostLaterShare
      ? [`memory of the clients grew to ${memory.laterShare.toFixed(2)} times while they worked`]
      : []),
  ]
}

export function memoryText({ pgbouncer, clients, postgres, laterShare }: Memory): string {
  return (
    `memory: PgBouncer ${megabytes(pgbouncer.bytes)}; each process of ${clients.connections} clients ` +
    `${megabytes(clients.bytes)}, ${Math.round(clients.bytes / clients.connections / kilobyte)} kB a connection, ` +
    `in the second half ${laterShare.toFixed(2)} times the first; PostgreSQL ${megabytes(postgres.bytes)} in all`
  )
}

/** The most that a process ever had; nothing where the system does not say. */
export async function peakBytesOf(pid: number): Promise<number | undefined> {
  return field(await read(`/proc/${pid}/status`), 'VmHWM')
}

/** What a server and all its backends have right now, each shared page once. */
export async function serverBytes(postmaster: number): Promise<number | undefined> {
  const children = await read(`/proc/${postmaster}/task/${postmaster}/children`)
  if (children === undefined) return undefined
  const pids = [postmaster, ...children.trim().split(' ').map(Number)]
  const each = await Promise.all(
    // A backend may end between the two looks.
    pids.map(async (pid) => field(await read(`/proc/${pid}/smaps_rollup`), 'Pss') ?? 0),
  )
  return each.reduce((sum, bytes) => sum + bytes, 0)
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / megabyte)} MB`
}

function field(text: string | undefined, name: string): number | undefined {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')
  return found === null ? undefined : Number(found[1]) * kilobyte
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
