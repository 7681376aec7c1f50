import type { OverTable } from '../../../claims/engine.ts'
import { isHole } from '../../../core/errors/claim-finding.ts'
import type { Driver, Executor, Row } from '../../../core/driver.ts'
import { displayName } from '../../../core/table-name.ts'
import { errnoOf } from '../errno.ts'
import { knownServer, serverOf } from '../server.ts'
import { showTable, type TableFacts, tableFacts } from '../schema/table-facts.ts'
import { quoteIdentifier, tableText } from '../sql/text.ts'
import { fixedColumns } from './claims.ts'
import { charsetFindings, columnFindings, columnsOf, tableFindings } from './column-findings.ts'
import { fittingIndex, type IndexUse } from './fitting-index.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'

/** The table, or its database, is not there. */
const absent: ReadonlySet<number | undefined> = new Set([1146, 1049])
/** No right to the database, to the table, to a column. */
const refused: ReadonlySet<number | undefined> = new Set([1044, 1142, 1143])

/** What the table lacks, for claims by whoever asks. */
export async function checkTable<Tx>(
  driver: Driver<Tx>,
  settings: OverTable,
): Promise<ClaimFinding[]> {
  await serverOf(driver, driver.alone)
  const { findings, facts } = await checkUse(driver.alone, settings)
  if (facts === undefined || findings.some(isHole)) return findings
  return [...findings, ...indexFindings(settings.layout, facts)]
}

/** Table, columns and rights. */
export async function checkUse(
  on: Executor,
  settings: OverTable,
): Promise<{ readonly findings: ClaimFinding[]; readonly facts?: TableFacts }> {
  const { layout } = settings
  const shown = await attempt(on, showTable(tableText(layout.table)).text)
  if ('findings' in shown) return { findings: await shown.findings(layout) }
  const facts = tableFacts(shown.rows)
  const findings = [
    ...tableFindings(layout, facts),
    ...columnFindings(settings, facts),
    ...charsetFindings(layout, facts, knownServer(on)?.charsets ?? []),
  ]
  if (findings.some(isHole)) return { findings }
  return { findings: [...findings, ...(await rightFindings(on, settings))], facts }
}

type Attempted =
  | { readonly rows: readonly Row[] }
  | { readonly findings: (layout: OverTable['layout']) => Promise<ClaimFinding[]> }

async function attempt(on: Executor, text: string): Promise<Attempted> {
  try {
    return { rows: await on.query({ text, values: [] }) }
  } catch (error) {
    const errno = errnoOf(error)
    if (absent.has(errno)) return { findings: async ({ table }) => [isAbsent(displayName(table))] }
    if (refused.has(errno)) return { findings: async (layout) => [await isRefused(on, layout)] }
    throw error
  }
}

function isAbsent(name: string): ClaimFinding {
  return {
    code: 'table-missing',
    object: `table ${name}`,
    what: 'is not there, or not in the database that the connections have chosen.',
    fix: 'Create it, or name its database: { schema, table }.',
  }
}

async function isRefused(on: Executor, layout: OverTable['layout']): Promise<ClaimFinding> {
  const [row] = await on.query({ text: 'SELECT CURRENT_USER() AS role', values: [] })
  const [name = '', host = '%'] = String(row?.['role']).split(/@(?=[^@]*$)/)
  const rights = layout.done === undefined ? 'SELECT, UPDATE, DELETE' : 'SELECT, UPDATE'
  return {
    code: 'privilege-missing',
    object: `table ${displayName(layout.table)}`,
    what: `does not let ${name}@${host} read and change its rows.`,
    fix: `GRANT ${rights} ON ${tableText(layout.table)} TO ${quoteIdentifier(name)}@${quoteIdentifier(host)};`,
  }
}

/** The server looks at rights before it looks for rows, and there is none for which FALSE is true. */
async function rightFindings(on: Executor, settings: OverTable): Promise<ClaimFinding[]> {
  const { layout } = settings
  const name = tableText(layout.table)
  const list = (columns: readonly string[]): string => columns.map(quoteIdentifier).join(', ')
  const { written, needed } = columnsOf(settings)
  const read = layout.columns === undefined ? '*' : list(needed)
  const assigned = written.map(
    (column) => `${quoteIdentifier(column)} = ${quoteIdentifier(column)}`,
  )
  const texts = [
    `SELECT ${read} FROM ${name} WHERE FALSE FOR UPDATE`,
    `UPDATE ${name} SET ${assigned.join(', ')} WHERE FALSE`,
    ...(layout.done === undefined ? [`DELETE FROM ${name} WHERE FALSE`] : []),
  ]
  for (const text of texts) {
    const tried = await attempt(on, text)
    if ('findings' in tried) return await tried.findings(layout)
  }
  return []
}

const why = {
  claim:
    'no index gives the rows to claim in their order, so every claim locks all of them for a moment, and others get none.',
  recover: 'no index finds the claims whose lease is over, so every sweep reads the table.',
} as const

function indexFindings(layout: OverTable['layout'], facts: TableFacts): ClaimFinding[] {
  const fixed = fixedColumns(layout)
  const { priority, leaseUntil } = layout
  const first = priority === undefined ? [] : [priority.column]
  const uses: [keyof typeof why, IndexUse][] = [
    ['claim', { fixed: [...fixed, ...first], order: layout.order }],
    ...(leaseUntil === undefined
      ? []
      : [['recover', { fixed, order: [leaseUntil] }] satisfies [keyof typeof why, IndexUse]]),
  ]
  return uses
    .filter(([, use]) => fittingIndex(facts, use) === undefined)
    .map(([about, { fixed: head, order }]) => ({
      code: 'index-missing',
      object: `table ${layout.table.table}`,
      what: why[about],
      fix: `ALTER TABLE ${tableText(layout.table)} ADD INDEX (${[...new Set([...head, ...order])].map(quoteIdentifier).join(', ')});`,
    }))
}
