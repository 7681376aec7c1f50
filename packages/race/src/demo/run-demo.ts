import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import type { Report } from '../core/model.ts'
import { htmlReport } from '../report/page/html-report.ts'
import { formatReport } from '../report/terminal/format-report.ts'
import { openFile } from './open-file.ts'
import { type QuotaRace, quotaRace, tables } from './quota.ts'

export interface DemoOptions {
  readonly url: string
  /** Where the page is written; default a file among the temporary ones. */
  readonly out?: string | undefined
  /** Open the page when it is there. */
  readonly open?: boolean | undefined
  print(text: string): unknown
  explore(race: QuotaRace): Promise<Report>
}

/**
 * Finds the quota race in a schema of its own, shows it, shows that the fix is free of it, and drops
 * the schema. Resolves to whether both came out as they should.
 */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const { print } = options
  const told = async (isFixed: boolean): Promise<Report> => {
    const report = await options.explore(quotaRace(place.url, place.schema, isFixed))
    print(formatReport(report))
    return report
  }
  await using place = await makeSchema(options.url)
  print(
    `Two uploads of one user, who has 99 of 100. Everything happens in the schema ${place.schema}, which is dropped at the end.\n\n`,
  )
  print('1. As it is mostly written: count, check, insert, in one transaction.\n\n')
  const race = await told(false)
  print('\n2. The same, with the row of the user locked before the count.\n\n')
  const fixed = await told(true)
  const page = resolve(options.out ?? join(tmpdir(), `${place.schema}.html`))
  writeFileSync(page, htmlReport(race))
  print(`\nThe race as a page with a picture: ${pathToFileURL(page).href}\n`)
  if (options.open === true && !(await openFile(page))) {
    print('No program was found that opens it.\n')
  }
  return race.verdict === 'race' && fixed.verdict === 'race-free' && fixed.coverage.overlapped
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Place extends AsyncDisposable {
  readonly schema: string
  /** The same database, with the schema in front. */
  readonly url: string
}

async function makeSchema(url: string): Promise<Place> {
  const schema = `holdfast_race_demo_${randomBytes(4).toString('hex')}`
  const drop = (): Promise<void> => alone(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  const interrupted = (signal: NodeJS.Signals): void => {
    void drop().finally(() => process.exit(128 + constants.signals[signal]))
  }
  for (const signal of signals) process.once(signal, interrupted)
  const letGo = (): void => {
    for (const signal of signals) process.removeListener(signal, interrupted)
  }
  const own = new URL(url)
  own.searchParams.set('options', `-c search_path=${schema}`)
  try {
    await alone(url, `CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${tables}`)
  } catch (error) {
    letGo()
    throw error
  }
  return {
    schema,
    url: own.href,
    async [Symbol.asyncDispose]() {
      await drop()
      letGo()
    },
  }
}

/** On a connection that is opened for it. */
async function alone(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 15_000 })
  // A connection that breaks is told by the statement.
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
