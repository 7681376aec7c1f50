/**
 * Runs the demo of an example from this repository: `node scripts/run-demo.ts outbox --rounds 1`. An example takes the
 * servers that it is told; those that it is not told are started here, and end with it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startInnodb, startPostgres } from '@holdfast/testkit'

const [example = '', ...args] = process.argv.slice(2)
const folder = fileURLToPath(new URL(`../examples/${example}/`, import.meta.url))
const environment = { ...process.env }
/** The one of several engines that is asked for needs no other server. */
const needs = (engine: string): boolean => !args.includes('--engine') || args.includes(engine)
await using servers = new AsyncDisposableStack()

if (environment['DATABASE_URL'] === undefined && needs('postgres')) {
  const server = servers.adopt(await startPostgres(), (started) => started.stop('immediate'))
  environment['DATABASE_URL'] = server.url()
}
if (example === 'three-engines' && environment['MYSQL_URL'] === undefined && needs('mysql')) {
  environment['MYSQL_URL'] = await servers.use(await startInnodb('mariadb-10')).createDatabase()
}

const demo = spawn(process.execPath, ['demo/demo.ts', ...args], {
  cwd: folder,
  env: environment,
  stdio: 'inherit',
})
// An interrupt reaches the demo as well, and the servers end after it.
process.once('SIGINT', () => undefined)
const [code] = (await once(demo, 'exit')) as [number | null]
process.exitCode = code ?? 1
