import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type PostgresServer, withClient } from '@holdfast/testkit'
import type { FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { quantile, summarise } from '../harness/summary.ts'
import { checkoutTables, type Taking } from '../race/checkout.ts'

const script = fileURLToPath(new URL('../race/http-checkout.ts', import.meta.url))
/** Fresh processes, half of them with the race and half without. */
const processes = { full: 50, quick: 4 }

interface Told {
  readonly verdict: string
  readonly classes: number
  readonly why: string
  readonly seconds: number
}

const expected: readonly (readonly [Taking, string])[] = [
  ['read, then write', 'race'],
  ['conditional decrement', 'race-free'],
]

/** The same test file again and again, each time in a process that knows nothing yet. */
export async function overHttp(
  server: PostgresServer,
  quick: boolean,
  progress: (text: string) => void,
): Promise<{ readonly comparisons: Comparison[]; readonly facts: FactTable }> {
  const url = await server.createDatabase('http_checkout')
  await withClient(url, (client) => client.query(checkoutTables))
  const told = new Map<Taking, Told[]>(expected.map(([taking]) => [taking, []]))
  const times = quick ? processes.quick : processes.full
  for (let time = 0; time < times; time += 1) {
    const [taking] = expected[time % expected.length] as (typeof expected)[number]
    const { stdout } = await promisify(execFile)(process.execPath, [script, url, taking])
    const one = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Told
    told.get(taking)?.push(one)
    if (time % 10 === 9) progress(`over HTTP: ${time + 1} of ${times} processes`)
  }
  const right = expected.reduce(
    (sum, [taking, verdict]) =>
      sum + (told.get(taking) ?? []).filter((one) => one.verdict === verdict).length,
    0,
  )
  const seconds = (told.get('read, then write') ?? []).map((one) => one.seconds)
  return {
    comparisons: [
      {
        name: 'http_checkout_s',
        bar: 5,
        barIs: 'at most',
        ratio: summarise(seconds),
        sides: [
          {
            value: `${quantile(seconds, 0.5).toFixed(2)} s`,
            label: 'from the start of the process to the verdict: Express, Prisma 7, over HTTP',
          },
        ],
      },
      {
        name: 'equal_verdicts',
        bar: 1,
        ratio: summarise([right / times]),
        sides: [{ value: `${right} of ${times}`, label: 'fresh processes gave the right verdict' }],
      },
    ],
    facts: {
      title: 'Two checkouts over HTTP, each time in a fresh process:',
      columns: ['stock is taken by', 'verdicts', 'classes', 'median', 'slowest'],
      rows: expected.map(([taking]) => {
        const some = told.get(taking) ?? []
        const all = some.map((one) => one.seconds)
        const odd = some.map(({ why }) => why).find((why) => why !== '')
        return [
          taking,
          [...Map.groupBy(some, ({ verdict }) => verdict)]
            .map(([verdict, ones]) => `${verdict} ${ones.length}`)
            .join(', ') + (odd === undefined ? '' : ` (${odd})`),
          [...new Set(some.map(({ classes }) => classes))].join(', '),
          `${quantile(all, 0.5).toFixed(2)} s`,
          `${quantile(all, 1).toFixed(2)} s`,
        ]
      }),
    },
  }
}
