import type { ColumnValue } from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { type ClaimLayout, columnOf, inStatus, isDue } from '../claims/claims.ts'
import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import { millisecondsText } from './settings.ts'
import { eq, gt, le } from '../sql/operators.ts'

/** Rows of one kind, counted up to a bound. */
export interface ClaimCount {
  readonly about: 'ready' | 'claimed' | 'dead' | 'stranded'
  /** What the planner thinks that it costs. */
  readonly explain: Statement
  /** `{ count, oldestMs }` as one JSON text. */
  readonly count: Statement
}

/** One more is read, to know whether there are more. */
export const countedRows = 10_000

/** What a table whose rows are claimed is asked. Without a column for attempts nothing is ever dead. */
export function claimCounts(
  layout: ClaimLayout & { readonly dead: ColumnValue | undefined },
): ClaimCount[] {
  const { priority, order, runAt, leaseUntil, dead } = layout
  const lease = columnOf(leaseUntil)
  const first =
    priority === undefined
      ? []
      : [`${columnOf(priority.column)}${priority.first === 'largest' ? ' DESC' : ''}`]
  const inOrder = ` ORDER BY ${[...first, ...order.map(columnOf)].join(', ')}`
  const claimed = inStatus(layout, layout.claimed)
  const over = `${claimed} AND ${lease} ${le} pg_catalog.statement_timestamp()`
  return [
    countOf(
      layout,
      'ready',
      isDue(layout),
      inOrder,
      runAt === undefined ? 'NULL' : columnOf(runAt),
    ),
    countOf(layout, 'claimed', claimed, '', 'NULL'),
    countOf(layout, 'stranded', over, ` ORDER BY ${lease}`, lease),
    ...(dead === undefined ? [] : [countOf(layout, 'dead', inStatus(layout, dead), '', 'NULL')]),
  ]
}

function countOf(
  { table }: ClaimLayout,
  about: ClaimCount['about'],
  where: string,
  order: string,
  since: string,
): ClaimCount {
  const rows = `SELECT ${since}::pg_catalog.timestamptz AS "#since" FROM ${tableText(table)} AS "#row" WHERE ${where}${order} LIMIT ${countedRows + 1}`
  return {
    about,
    explain: { text: `EXPLAIN (FORMAT JSON) ${rows}`, values: [] },
    count: {
      text: `SELECT pg_catalog.json_build_object('count', pg_catalog.count(*),
  'oldestMs', ${millisecondsText('pg_catalog.min("#since")', 'pg_catalog.statement_timestamp()')})::pg_catalog.text AS answer
FROM (${rows}) AS "#counted"`,
      values: [],
    },
  }
}

/** Whether the ready-made table is there and may be read. */
export function findWork(schema: string): Statement {
  return {
    text: `SELECT coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass($1::pg_catalog.text), 'SELECT'), false)::pg_catalog.text AS readable`,
    values: [`${quoteIdentifier(schema)}."work"`],
  }
}

const mostQueues = 50

/** All queues of the ready-made table, dead ones included: reads all of it. */
export function allQueues(schema: string): {
  readonly explain: Statement
  readonly read: Statement
} {
  const text = `SELECT w.queue FROM ${quoteIdentifier(schema)}."work" AS w GROUP BY w.queue ORDER BY w.queue LIMIT ${mostQueues}`
  return {
    explain: { text: `EXPLAIN (FORMAT JSON) ${text}`, values: [] },
    read: { text, values: [] },
  }
}

/** The queues in which something waits or is claimed, by hopping through the indexes. */
export function liveQueues(schema: string): Statement {
  const table = `${quoteIdentifier(schema)}."work"`
  const hops = (name: string, status: string): string => `${name}(queue) AS (
  (SELECT w.queue FROM ${table} AS w WHERE w.status ${eq} '${status}' ORDER BY w.queue LIMIT 1)
  UNION ALL
  SELECT (SELECT w.queue FROM ${table} AS w WHERE w.status ${eq} '${status}' AND w.queue ${gt} ${name}.queue ORDER BY w.queue LIMIT 1)
  FROM ${name} WHERE ${name}.queue IS NOT NULL
)`
  return {
    text: `WITH RECURSIVE ${hops('pending', 'pending')}, ${hops('claimed', 'claimed')}
SELECT queue FROM (SELECT queue FROM pending UNION SELECT queue FROM claimed) AS "each"
WHERE queue IS NOT NULL ORDER BY queue LIMIT ${mostQueues}`,
    values: [],
  }
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Total Cost': number
  readonly Filter?: string
  readonly Plans?: readonly PlanNode[]
}

/** As much as reading some 200 MB from beginning to end. */
const mostCost = 25_000

/** Whether a plan reads only what it counts, or at least a table that is small. */
export function isAffordable([first]: readonly Row[]): boolean {
  const answer: unknown = first === undefined ? undefined : Object.values(first)[0]
  const [plan] = (typeof answer === 'string' ? JSON.parse(answer) : answer) as [{ Plan: PlanNode }]
  if (plan.Plan['Total Cost'] <= mostCost) return true
  return nodesOf(plan.Plan).every(
    (node) => !/Seq Scan|Sort|Bitmap/.test(node['Node Type']) && node.Filter === undefined,
  )
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}
