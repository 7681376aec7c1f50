import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** `pgbench` comes with PostgreSQL packages of operating systems, but not with those of npm. */
export function pgbenchBinary(): string | undefined {
  const folders = [
    ...[18, 17, 16, 15].map((version) => `/usr/lib/postgresql/${version}/bin`),
    ...(process.env['PATH'] ?? '').split(':'),
  ]
  return folders.map((folder) => join(folder, 'pgbench')).find((path) => existsSync(path))
}

export interface PgbenchRun {
  readonly url: string
  readonly script: string
  readonly clients: number
  readonly seconds: number
}

/**
 * Transactions per second of a script. A backend plans everything in its first transaction, and each
 * run has new backends, so the first of each client is left out.
 */
export async function pgbench(binary: string, run: PgbenchRun): Promise<number> {
  // A machine that stands still for a second gets more of them.
  for (const seconds of [run.seconds, run.seconds * 2, run.seconds * 4]) {
    const rate = await measured(binary, { ...run, seconds })
    if (rate !== undefined) return rate
  }
  throw new Error('pgbench did too little to be measured')
}

async function measured(binary: string, run: PgbenchRun): Promise<number | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-pgbench-'))
  try {
    const script = join(folder, 'script.sql')
    await writeFile(script, run.script)
    await promisify(execFile)(
      binary,
      [
        '--no-vacuum',
        '--protocol=prepared',
        '--log',
        `--log-prefix=${join(folder, 'log')}`,
        `--client=${run.clients}`,
        `--jobs=${run.clients}`,
        `--time=${run.seconds}`,
        `--file=${script}`,
        run.url,
      ],
      { timeout: (run.seconds + 60) * 1_000 },
    )
    const logs = (await readdir(folder)).filter((name) => name.startsWith('log'))
    const texts = await Promise.all(logs.map((name) => readFile(join(folder, name), 'utf8')))
    return rateIn(texts.join(''))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Nothing if a client did too little. A line is: client, number of its transaction, µs it took, script, when it ended
 * (s, µs).
 */
function rateIn(log: string): number | undefined {
  const ends = new Map<string, number[]>()
  for (const line of log.split('\n')) {
    const [client, , , , seconds, micros] = line.split(' ')
    if (client === undefined || seconds === undefined) continue
    const of = ends.get(client) ?? []
    of.push(Number(seconds) + Number(micros) / 1_000_000)
    ends.set(client, of)
  }
  let rate = 0
  for (const times of ends.values()) {
    const [first, last] = [Math.min(...times), Math.max(...times)]
    if (times.length < 2 || last === first) return undefined
    rate += (times.length - 1) / (last - first)
  }
  return rate
}
