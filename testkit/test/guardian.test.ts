import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { waitUntil } from '../src/index.ts'

const program = `
  const { startPostgres, startPgBouncer } = await import(process.argv[1])
  const server = await startPostgres({ memoryMb: 300 })
  const pooler = await startPgBouncer(server)
  console.log(JSON.stringify([server.pid, pooler.pid, server.dataDir]))
  // Waits to be told before it leaves, so that the test can see the servers alive first.
  process.stdin.resume()
  if (process.argv[2] === 'stay') setInterval(() => {}, 1000)
`

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test.each([
  { how: 'is killed with SIGKILL', stay: 'stay', end: 'SIGKILL' },
  { how: 'is killed while they stand still', stay: 'stay', end: 'SIGKILL', stopped: true },
  { how: 'is interrupted', stay: 'stay', end: 'SIGINT' },
  { how: 'ends without stopping its servers', stay: 'leave' },
] as { how: string; stay: string; end?: NodeJS.Signals; stopped?: true }[])(
  'the servers go when the process that started them $how',
  async ({ stay, end, stopped }) => {
    const parent = spawn(
      process.execPath,
      ['--input-type=module', '--eval', program, import.meta.resolve('../src/index.ts'), stay],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const exited = once(parent, 'exit')
    const [line] = (await once(createInterface(parent.stdout), 'line')) as [string]
    const [postgres, pgbouncer, dataDir] = JSON.parse(line) as [number, number, string]
    expect(isAlive(postgres) && isAlive(pgbouncer)).toBe(true)
    if (stopped) for (const pid of [postgres, pgbouncer]) process.kill(pid, 'SIGSTOP')
    parent.stdin.end()
    if (end !== undefined) parent.kill(end)
    await exited
    await waitUntil('the servers are gone', () =>
      isAlive(postgres) || isAlive(pgbouncer) || existsSync(dirname(dataDir)) ? undefined : true,
    )
  },
)
