/**
 * What runs under the lease: says that it runs, for a while, and ends as it was told. That it is alone is seen without
 * Holdfast: it listens on a port that only one process can have, from its first moment to its last, however it dies.
 */
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:net'

const [log = '', port, workMs, code] = process.argv.slice(2)
const token = process.env['HOLDFAST_LEASE_TOKEN'] ?? '0'
const note = (what: string): void =>
  appendFileSync(log, `${what} ${process.pid} ${process.ppid} ${token}\n`)

const server = createServer()
server.once('error', () => {
  note('overlap')
  process.exit(99)
})
server.listen(Number(port), '127.0.0.1', () => {
  note('start')
  setTimeout(() => {
    note('end')
    if (code === 'kill') process.kill(process.pid, 'SIGKILL')
    else process.exit(Number(code))
  }, Number(workMs))
})
