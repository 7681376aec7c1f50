import type { DeadPage, DeadRow } from 'holdfast/claims'
import { cleanText } from '../terminal/clean-text.ts'
import type { Look } from './look.ts'
import { renderTable } from './table.ts'

const fieldOf = (row: object, name: string): string => {
  const value = (row as Record<string, unknown>)[name]
  if (value === undefined || value === null) return ''
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function renderDeadJobs({ rows, next }: DeadPage<object>, look: Look): string[] {
  const has = (name: string): boolean => rows.some(({ row }) => name in row)
  const column = (name: string, title = name) =>
    has(name) ? [{ title, of: ({ row }: DeadRow<object>) => fieldOf(row, name) }] : []
  return [
    ...renderTable(
      [
        { title: 'job', of: ({ key }) => key.join(',') },
        ...column('queue'),
        ...column('scope'),
        ...column('runAt', 'due'),
        { title: 'attempts', of: ({ attempts }) => String(attempts ?? ''), right: true },
        { title: 'error', of: ({ error }) => error ?? '' },
      ],
      rows,
      look,
    ),
    ...(next === undefined ? [] : ['', `More: --after '${cleanText(next)}'`]),
  ]
}

export function renderDeadJob(
  { key, row, attempts, error }: DeadRow<object>,
  look: Look,
): string[] {
  const lines: [string, string][] = [
    ['job', key.join(',')],
    ...Object.keys(row).map((name): [string, string] => [name, fieldOf(row, name)]),
    ['attempts', String(attempts ?? '')],
    ['error', error ?? ''],
  ]
  return lines.map(([name, text]) => `${look.paint('bold', cleanText(name))}: ${cleanText(text)}`)
}
