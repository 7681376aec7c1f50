/** An exploration with `state: 'restore'` that is sent a signal in the middle; prints what becomes of it. */
import { explore } from '../../src/explore.ts'
import type { Flow } from '../../src/run/options.ts'

const [url, signal, listens] = process.argv.slice(2)

if (listens === 'exits') process.on(String(signal), () => process.exit(7))
if (listens === 'listens') process.on(String(signal), () => process.stdout.write('heard '))

const spoil: Flow = async ({ pool }) => {
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query('DELETE FROM account WHERE id = 2')
  await client.query('UPDATE account SET n = n + 1')
  await client.query(`SELECT nextval('drawn')`)
  await client.query('COMMIT')
  client.release()
}

let runs = 0
try {
  await explore({
    url,
    state: 'restore',
    flows: { a: spoil, b: spoil },
    onProgress() {
      runs += 1
      // In the middle of the next run.
      if (runs === 4) setTimeout(() => process.kill(process.pid, String(signal)), 30)
      if (runs === 200) throw new Error('no signal came')
    },
  })
  process.stdout.write('came to its end')
} catch (error) {
  process.stdout.write(`rejected: ${error instanceof Error ? error.message : String(error)}`)
}
