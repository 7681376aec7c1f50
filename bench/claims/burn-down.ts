import type { PostgresServer } from '@holdfast/testkit'
import type { FactTable } from '../harness/bench-scenario.ts'
import { quantile } from '../harness/summary.ts'
import { concurrency, connections, queues } from './queues.ts'

/** Jobs per second of everybody on the same jobs, in turn, a fresh database each time. */
export async function burnDown(
  server: PostgresServer,
  { jobs, rounds }: { readonly jobs: number; readonly rounds: number },
  progress: (text: string) => void,
): Promise<FactTable> {
  const rates = new Map<string, number[]>(Object.keys(queues).map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, [name, queue]] of Object.entries(queues).entries()) {
      progress(`${name}: round ${round + 1} of ${rounds}`)
      const url = await server.createDatabase(`burn_${round}_${at}`)
      await queue.fill(url, jobs)
      rates.get(name)?.push(await rateOf(queue, url, jobs))
    }
  }
  return {
    title: `No-op jobs per second, ${jobs} waiting, one process, ${concurrency} handlers at a time, ${connections} connections:`,
    columns: ['', 'median', 'least', 'most'],
    rows: [...rates].map(([name, values]) => [
      name,
      ...[quantile(values, 0.5), Math.min(...values), Math.max(...values)].map((value) =>
        Math.round(value).toLocaleString('en'),
      ),
    ]),
  }
}

async function rateOf(queue: (typeof queues)[string], url: string, jobs: number): Promise<number> {
  let [handled, first] = [0, 0]
  const { promise, resolve } = Promise.withResolvers<void>()
  // From the first job on: starting up is not what is measured.
  await using _worker = await queue.burn(url, () => {
    if (handled === 0) first = performance.now()
    handled += 1
    if (handled === jobs) resolve()
  })
  await promise
  return (jobs - 1) / ((performance.now() - first) / 1_000)
}
