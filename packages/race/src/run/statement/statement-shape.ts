import { drawnPlaces, insertedColumns, type RowCondition, rowConditionOf } from './row-condition.ts'
import { type Setting, settingOf } from './session-setting.ts'
import {
  isTree,
  listOf,
  nodeOf,
  type ParsedStatement,
  parseStatement,
  stringsOf,
  textOf,
  type Tree,
  walk,
} from './statement-tree.ts'

/** A table as a statement names it. */
export interface TableName {
  readonly schema: string | undefined
  readonly name: string
}

/**
 * What the text of a statement tells by itself. It is used to make footprints finer, never to guess:
 * a text that is not understood is `unknown`, and then everything the session holds counts.
 */
export interface StatementShape extends Setting {
  readonly kind:
    | 'begin'
    | 'commit'
    | 'rollback'
    | 'rollback-to'
    /** Concerns the session alone: SET, SAVEPOINT, SHOW, … */
    | 'local'
    /** SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE. */
    | 'query'
    /** LOCK TABLE, TRUNCATE: the locks say it all. */
    | 'lock'
    /** DDL and everything else. */
    | 'unknown'
  /** `select` also for VALUES and TABLE; of a WITH the verb of its main part. */
  readonly verb: string
  /** Every table that it names; the target of a write only if it is named once more. */
  readonly reads: readonly TableName[]
  /** Names of the functions that it calls, without schemas. */
  readonly calls: ReadonlySet<string>
  /** Each of them is called once: no table, no list of rows, no name twice. */
  readonly callsOnce: boolean
  /** Comparisons of a session with the one that asks: `pid = pg_backend_pid()`. */
  readonly ownLooks: number
  readonly operators: ReadonlySet<string>
  /** Last parts of column references; `person.title` may be a function call too. */
  readonly columnNames: ReadonlySet<string>
  /** The table that INSERT, UPDATE, DELETE or MERGE writes. */
  readonly target: TableName | undefined
  /** By which of them, wherever in the statement it stands. */
  readonly write: 'insert' | 'update' | 'delete' | 'merge' | undefined
  readonly onConflict: boolean
  /** Columns that an INSERT lists. */
  readonly columns: readonly string[] | undefined
  /** Places in the rows of an INSERT whose values all rows draw: see `drawnPlaces`. */
  readonly drawn: ReadonlySet<number>
  /** Columns that an UPDATE or ON CONFLICT sets. */
  readonly assigned: ReadonlySet<string>
  /** FOR UPDATE, FOR SHARE and their kin. */
  readonly lockingRead: boolean
  /** SKIP LOCKED, NOWAIT, pg_try_advisory_lock. */
  readonly attempt: boolean
  /** More than one of INSERT, UPDATE, DELETE, MERGE. */
  readonly writesSeveral: boolean
  /** TRUNCATE … CASCADE. */
  readonly cascade: boolean
  /** Which rows it is about, if it is about one table only. */
  readonly rows: RowCondition | undefined
  /** How often each parameter is used, by its number. */
  readonly parameters: ReadonlyMap<number, number>
  /** LIMIT, and ORDER BY nowhere. */
  readonly unorderedLimit: boolean
  /** PREPARE: what EXECUTE with this name will run. */
  readonly prepares: { readonly name: string; readonly shape: StatementShape } | undefined
  /** The prepared statement that an EXECUTE in it runs. */
  readonly executes: string | undefined
  /** DECLARE … WITH HOLD: the COMMIT runs what was not fetched. */
  readonly runsOn: boolean
}

const shapes = new Map<string, StatementShape>()

/** The shape of a text of one statement; of several, `unknown`. */
export function shapeOf(text: string): StatementShape {
  let shape = shapes.get(text)
  if (!shape) {
    shape = read(parseStatement(text))
    if (shapes.size > 2000) shapes.clear()
    shapes.set(text, shape)
  }
  return shape
}

function read(parsed: ReturnType<typeof parseStatement>): StatementShape {
  if (parsed === 'nothing') return survey({ kind: '', tree: {} })
  return parsed ? survey(parsed) : unread()
}

/** Of a text that is not understood: nobody knows what it leaves behind. */
export function unread(): StatementShape {
  return { ...survey({ kind: '', tree: {} }), residue: 'settings' }
}

function survey(statement: ParsedStatement): StatementShape {
  const { tree } = statement
  const tables: Tree[] = []
  const writes: { readonly verb: StatementShape['write']; readonly node: Tree }[] = []
  const calls = new Set<string>()
  const operators = new Set<string>()
  const columnNames = new Set<string>()
  const parameters = new Map<number, number>()
  let lockingRead = false
  let attempt = false
  let subqueries = 0
  let limited = false
  let ordered = false
  let callsOnce = true
  let ownLooks = 0
  let executes: string | undefined

  const visit = (name: string, node: Tree): void => {
    const verb = writers[name]
    if (verb) writes.push({ verb, node })
    if (typeof node['relname'] === 'string') tables.push(node)
    if (name === 'ExecuteStmt') executes = textOf(node, 'name')
    if (node['limitCount']) limited = true
    if (node['sortClause']) ordered = true
    if (node['fromClause'] || node['valuesLists']) callsOnce = false
    if (name === 'FuncCall' || name === 'funccall') {
      const called = stringsOf(node['funcname']).at(-1) ?? ''
      if (calls.has(called) || manyRows.test(called)) callsOnce = false
      calls.add(called)
    } else if (name === 'A_Expr') {
      const operator = stringsOf(node['name']).at(-1) ?? ''
      if (operators.has(operator)) callsOnce = false
      operators.add(operator)
      if (operator === '=' && isOwnLook(node)) ownLooks += 1
    }
    if (name === 'ColumnRef') {
      const column = stringsOf(node['fields']).at(-1) ?? ''
      if (columnNames.has(column)) callsOnce = false
      columnNames.add(column)
    } else if (name === 'SubLink') {
      subqueries += 1
      for (const operator of stringsOf(node['operName'])) operators.add(operator)
    } else if (name === 'ParamRef') {
      const number = Number(node['number'] ?? 0)
      parameters.set(number, (parameters.get(number) ?? 0) + 1)
    } else if (name === 'LockingClause') {
      lockingRead = true
      if (node['waitPolicy'] !== 'LockWaitBlock') attempt = true
    }
  }
  walk({ [statement.kind]: tree }, visit)

  const [only, more] = writes
  const target = only && !more ? nodeOf(only.node, 'relation') : undefined
  const { kind, verb } = kindOf(statement)
  const triesLock = [...calls].some((call) => call.startsWith('pg_try_advisory'))
  return {
    kind,
    verb,
    reads: tables.filter((table) => table !== target).map(nameOf),
    calls,
    callsOnce: callsOnce && writes.length === 0 && subqueries === 0,
    ownLooks,
    operators,
    columnNames,
    target: target && nameOf(target),
    write: target && only?.verb,
    onConflict: only?.node['onConflictClause'] !== undefined,
    columns: only?.verb === 'insert' ? insertedColumns(only.node) : undefined,
    drawn: only?.verb === 'insert' ? drawnPlaces(only.node) : new Set(),
    assigned: assignedBy(writes.map(({ node }) => node)),
    lockingRead,
    attempt: attempt || triesLock || tree['nowait'] === true,
    writesSeveral: more !== undefined,
    cascade: tree['behavior'] === 'DROP_CASCADE',
    rows: tables.length === 1 && subqueries === 0 ? rowConditionOf(statement) : undefined,
    parameters,
    unorderedLimit: limited && !ordered,
    ...settingOf(statement, calls),
    prepares: preparedBy(statement),
    executes,
    runsOn:
      statement.kind === 'DeclareCursorStmt' && (Number(tree['options'] ?? 0) & withHold) !== 0,
  }
}

/** CURSOR_OPT_HOLD of the server's sources. */
const withHold = 0x20

function preparedBy({ kind, tree }: ParsedStatement): StatementShape['prepares'] {
  if (kind !== 'PrepareStmt' || !isTree(tree['query'])) return undefined
  const [entry] = Object.entries(tree['query'])
  if (!entry) return undefined
  return { name: textOf(tree, 'name'), shape: survey({ kind: entry[0], tree: entry[1] as Tree }) }
}

/** Functions that give more than one row. */
const manyRows = /^(generate_|unnest$|regexp_(split_to_table|matches)$|string_to_table$|jsonb?_)/

function isOwnLook(comparison: Tree): boolean {
  const sides = [comparison['lexpr'], comparison['rexpr']]
  return [sides, sides.toReversed()].some(
    ([one, other]) =>
      stringsOf(nodeOf(one, 'ColumnRef')?.['fields']).at(-1) === 'pid' &&
      stringsOf(nodeOf(other, 'FuncCall')?.['funcname']).at(-1) === 'pg_backend_pid',
  )
}

const writers: Readonly<Record<string, StatementShape['write']>> = {
  InsertStmt: 'insert',
  UpdateStmt: 'update',
  DeleteStmt: 'delete',
  MergeStmt: 'merge',
}

function nameOf(table: Tree): TableName {
  return {
    schema: textOf(table, 'schemaname') || undefined,
    name: textOf(table, 'relname'),
  }
}

/** Columns after SET, of whatever in the statement sets some. */
function assignedBy(writes: readonly Tree[]): ReadonlySet<string> {
  const assigned = new Set<string>()
  const add = (list: unknown): void => {
    for (const item of listOf(list)) {
      assigned.add(textOf(nodeOf(item, 'ResTarget'), 'name'))
    }
  }
  for (const write of writes) {
    add(write['targetList'])
    add(nodeOf(write, 'onConflictClause')?.['targetList'])
    for (const clause of listOf(write['mergeWhenClauses'])) {
      add(nodeOf(clause, 'MergeWhenClause')?.['targetList'])
    }
  }
  return assigned
}

type KindAndVerb = Pick<StatementShape, 'kind' | 'verb'>

function kindOf({ kind, tree }: ParsedStatement): KindAndVerb {
  if (kind === 'TransactionStmt') return transactionKind(tree)
  // It makes a table.
  if (kind === 'SelectStmt' && tree['intoClause']) return { kind: 'unknown', verb: 'select into' }
  // The checks that were put off are made now.
  if (kind === 'ConstraintsSetStmt' && tree['deferred'] !== true) {
    return { kind: 'unknown', verb: 'set constraints' }
  }
  if (kind === 'VariableSetStmt') {
    return { kind: 'local', verb: textOf(tree, 'kind').startsWith('VAR_RESET') ? 'reset' : 'set' }
  }
  if (kind === 'CopyStmt')
    return { kind: 'unknown', verb: tree['is_from'] ? 'copy from' : 'copy to' }
  if (kind === 'FetchStmt') return { kind: 'unknown', verb: tree['ismove'] ? 'move' : 'fetch' }
  return kinds.get(kind) ?? { kind: 'unknown', verb: kind.replace(/Stmt$/, '').toLowerCase() }
}

const kinds: ReadonlyMap<string, KindAndVerb> = new Map<string, KindAndVerb>([
  ['SelectStmt', { kind: 'query', verb: 'select' }],
  ['InsertStmt', { kind: 'query', verb: 'insert' }],
  ['UpdateStmt', { kind: 'query', verb: 'update' }],
  ['DeleteStmt', { kind: 'query', verb: 'delete' }],
  ['MergeStmt', { kind: 'query', verb: 'merge' }],
  ['LockStmt', { kind: 'lock', verb: 'lock' }],
  ['TruncateStmt', { kind: 'lock', verb: 'truncate' }],
  ['ConstraintsSetStmt', { kind: 'local', verb: 'set constraints' }],
  ['VariableShowStmt', { kind: 'local', verb: 'show' }],
  ['PrepareStmt', { kind: 'unknown', verb: 'prepare' }],
  ['DeallocateStmt', { kind: 'local', verb: 'deallocate' }],
  ['ListenStmt', { kind: 'local', verb: 'listen' }],
  ['UnlistenStmt', { kind: 'local', verb: 'unlisten' }],
  ['DiscardStmt', { kind: 'local', verb: 'discard' }],
  ['ClosePortalStmt', { kind: 'local', verb: 'close' }],
  ['DeclareCursorStmt', { kind: 'unknown', verb: 'declare' }],
])

function transactionKind(tree: Tree): KindAndVerb {
  // AND CHAIN opens the next transaction at once, at the level of this one.
  if (tree['chain']) return { kind: 'unknown', verb: 'chain' }
  switch (tree['kind']) {
    case 'TRANS_STMT_BEGIN':
    case 'TRANS_STMT_START':
      return { kind: 'begin', verb: 'begin' }
    case 'TRANS_STMT_COMMIT':
      return { kind: 'commit', verb: 'commit' }
    case 'TRANS_STMT_ROLLBACK':
      return { kind: 'rollback', verb: 'rollback' }
    case 'TRANS_STMT_ROLLBACK_TO':
      return { kind: 'rollback-to', verb: 'rollback' }
    case 'TRANS_STMT_SAVEPOINT':
      return { kind: 'local', verb: 'savepoint' }
    case 'TRANS_STMT_RELEASE':
      return { kind: 'local', verb: 'release' }
    default:
      // Two-phase commit.
      return { kind: 'unknown', verb: 'prepared' }
  }
}
