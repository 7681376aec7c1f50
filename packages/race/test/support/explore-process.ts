/** An exploration in a process of its own: a lost update and its fix, on one table. Prints the verdicts. */
import { explore } from '../../src/explore.ts'
import type { Flow } from '../../src/run/options.ts'

const [url, rounds] = process.argv.slice(2)

const careless: Flow = async ({ pool }) => {
  const { rows } = await pool.query('SELECT n FROM counters WHERE id = 1')
  await pool.query('UPDATE counters SET n = $1 WHERE id = 1', [rows[0].n + 1])
}
const careful: Flow = ({ pool }) => pool.query('UPDATE counters SET n = n + 1 WHERE id = 1')

const verdicts: string[] = []
for (let round = 0; round < Number(rounds); round += 1) {
  for (const flow of [careless, careful]) {
    const { verdict } = await explore({
      url,
      seed: ({ query }) => query('UPDATE counters SET n = 0'),
      flows: { a: flow, b: flow },
      onProgress: () => undefined,
    })
    verdicts.push(verdict)
  }
}
process.stdout.write(verdicts.join(' '))
