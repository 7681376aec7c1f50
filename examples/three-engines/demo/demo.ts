/**
 * Five tasks on three engines, by hand and with Holdfast: on SQLite, on PostgreSQL if DATABASE_URL is set, and on MariaDB or
 * MySQL if MYSQL_URL is. `--engine name` (as often as you like): only on these.
 */
import { parseArgs } from 'node:util'
import { addresses, type Engine, engines, startServer } from './databases.ts'
import { type Measured, measure } from './measure.ts'
import { faults, type Results, table } from './report.ts'

const { values } = parseArgs({ options: { engine: { type: 'string', multiple: true } } })
const asked = values.engine ?? engines.filter((engine) => addresses[engine] !== undefined)
const unknown = asked.filter((name) => !engines.includes(name as Engine))
if (unknown.length > 0) throw new Error(`--engine takes ${engines.join(', ')}`)

console.log(`Each task is done by several processes at once. One is killed at work, and another is
paused for longer than anybody waits for it.
`)

const results: Partial<Record<Engine, Results[Engine]>> = {}
for (const engine of asked as Engine[]) {
  const server = await startServer(engine)
  try {
    const run = async (way: 'by hand' | 'holdfast'): Promise<Measured> => {
      console.log(`${engine}, ${way} …`)
      return await measure(server, engine, way)
    }
    results[engine] = { 'by hand': await run('by hand'), holdfast: await run('holdfast') }
  } finally {
    await server.stop()
  }
}

console.log(`\n${table(results)}\n`)
const found = (asked as Engine[]).flatMap((engine) => {
  const result = results[engine]
  return result === undefined ? [] : faults(engine, result)
})
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
