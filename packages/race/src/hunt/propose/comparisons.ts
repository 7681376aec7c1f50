import {
  listOf,
  nodeOf,
  parseStatement,
  stringsOf,
  type Tree,
  walk,
} from '../../run/statement/statement-tree.ts'

/** `column = $1`, wherever in a statement it stands; and the columns of an INSERT … SELECT $1. */
export interface Comparison {
  readonly column: string
  readonly parameter: number
}

export function comparisonsIn(text: string): readonly Comparison[] {
  const parsed = parseStatement(text)
  if (parsed === undefined || parsed === 'nothing') return []
  const found: Comparison[] = []
  const add = (column: string | undefined, value: unknown): void => {
    const parameter = parameterOf(value)
    if (column !== undefined && parameter !== undefined) found.push({ column, parameter })
  }
  walk({ [parsed.kind]: parsed.tree }, (name, node) => {
    if (name === 'A_Expr' && stringsOf(node['name']).at(-1) === '=') {
      // Of `IN ($1, $2)` and `= ANY ($1)` too.
      const list = nodeOf(node['rexpr'], 'List')
      for (const one of list ? listOf(list['items']) : [node['rexpr']])
        add(columnOf(node['lexpr']), one)
      add(columnOf(node['rexpr']), node['lexpr'])
    }
    if (name !== 'InsertStmt') return
    const select = nodeOf(node['selectStmt'], 'SelectStmt')
    const [row] = listOf(select?.['valuesLists'])
    const values = row
      ? listOf(nodeOf(row, 'List')?.['items'])
      : listOf(select?.['targetList']).map((one) => nodeOf(one, 'ResTarget')?.['val'])
    for (const [at, one] of listOf(node['cols']).entries()) {
      const column: unknown = nodeOf(one, 'ResTarget')?.['name']
      if (typeof column === 'string') add(column, values[at])
    }
  })
  return found
}

function columnOf(node: unknown): string | undefined {
  return stringsOf(nodeOf(node, 'ColumnRef')?.['fields']).at(-1)
}

function parameterOf(node: unknown): number | undefined {
  const inside: Tree | undefined = nodeOf(node, 'TypeCast')
  if (inside) return parameterOf(inside['arg'])
  const number: unknown = nodeOf(node, 'ParamRef')?.['number']
  return typeof number === 'number' ? number : undefined
}
