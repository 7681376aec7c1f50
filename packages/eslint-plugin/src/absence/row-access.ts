import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { knownPath } from '../clients/known-client.ts'
import { sqlOf } from '../clients/statements.ts'
import { before, type Chain, type Step } from '../syntax/chain.ts'
import { initializerOf, type Node, propertyName, unwrapped, variableOf } from '../syntax/node.ts'

/** A statement about rows of one table: which one, and through what client. */
export interface RowAccess {
  /** The client, or the repository. */
  readonly client: Chain
  /** The model or table, as it is written. */
  readonly model: string
}

/** What a look-up answers: one row or nothing, a list, or a result with `rows`. */
export interface Lookup extends RowAccess {
  readonly answer: 'row' | 'list' | 'result'
}

type Reader<T> = (source: SourceCode, chain: Chain) => T | undefined

const lookups: readonly Reader<Lookup>[] = [
  prismaLookup,
  typeOrmLookup,
  drizzleQueryLookup,
  drizzleSelect,
  kyselyLookup,
  pgLookup,
]
const creations: readonly Reader<RowAccess>[] = [
  prismaCreation,
  typeOrmCreation,
  drizzleCreation,
  kyselyCreation,
  pgCreation,
]

/** What a chain looks up, if it asks for rows of one table. */
export function lookupOf(source: SourceCode, chain: Chain): Lookup | undefined {
  return first(lookups, source, chain)
}

/** What a chain creates, if it inserts rows and says nothing about those that are there already. */
export function creationOf(source: SourceCode, chain: Chain): RowAccess | undefined {
  return first(creations, source, chain)
}

function first<T>(readers: readonly Reader<T>[], source: SourceCode, chain: Chain): T | undefined {
  for (const read of readers) {
    const found = read(source, chain)
    if (found !== undefined) return found
  }
  return undefined
}

function prismaLookup(_: SourceCode, chain: Chain): Lookup | undefined {
  const [model, method] = chain.steps.slice(-2)
  if (method?.call === undefined || model === undefined || model.call) return undefined
  if (method.name !== 'findUnique' && method.name !== 'findFirst') return undefined
  // `db.query.users.findFirst` is Drizzle's.
  if (chain.steps.at(-3)?.name === 'query') return undefined
  return { client: before(chain, 2), model: model.name, answer: 'row' }
}

function prismaCreation(_: SourceCode, chain: Chain): RowAccess | undefined {
  const [model, method] = chain.steps.slice(-2)
  if (method?.name !== 'create' || !method.call || model === undefined || model.call) {
    return undefined
  }
  return { client: before(chain, 2), model: model.name }
}

function typeOrmLookup(source: SourceCode, chain: Chain): Lookup | undefined {
  const method = chain.steps.at(-1)
  if (!method?.call || !/^(findOne|findOneBy|exists?|existsBy)$/.test(method.name)) return undefined
  const access = typeOrmAccess(source, chain, method)
  return access && { ...access, answer: 'row' }
}

function typeOrmCreation(source: SourceCode, chain: Chain): RowAccess | undefined {
  const method = chain.steps.at(-1)
  if (!method?.call || (method.name !== 'save' && method.name !== 'insert')) return undefined
  const access = typeOrmAccess(source, chain, method)
  const entity = method.call.type === 'CallExpression' ? method.call.arguments.at(-1) : undefined
  // `save` of something that was read is an update.
  const isNew = method.name === 'insert' || (entity !== undefined && isMadeHere(source, entity))
  return isNew ? access : undefined
}

function typeOrmAccess(source: SourceCode, chain: Chain, { call }: Step): RowAccess | undefined {
  const client = before(chain, 1)
  if (knownPath(source, client)?.library !== 'typeorm') return undefined
  const isManager = client.steps.at(-1)?.name === 'manager'
  if (!isManager) return { client, model: '' }
  const [entity] = call?.type === 'CallExpression' ? call.arguments : []
  return entity?.type === 'Identifier' ? { client, model: entity.name } : undefined
}

function isMadeHere(source: SourceCode, given: Node): boolean {
  const node = unwrapped(given)
  if (node.type === 'ObjectExpression') return !node.properties.some((each) => isId(each))
  if (node.type === 'NewExpression') return true
  if (node.type === 'CallExpression') {
    const { callee } = node
    return callee.type === 'MemberExpression' && propertyName(callee) === 'create'
  }
  const variable = node.type === 'Identifier' ? variableOf(source, node) : undefined
  const init = variable && initializerOf(variable)?.init
  return init ? isMadeHere(source, init) : false
}

function isId(property: TSESTree.ObjectLiteralElement): boolean {
  if (property.type === 'SpreadElement') return true
  return property.key.type === 'Identifier' && property.key.name === 'id'
}

function drizzleQueryLookup(_: SourceCode, chain: Chain): Lookup | undefined {
  const [query, table, method] = chain.steps.slice(-3)
  if (query?.name !== 'query' || query.call || table === undefined || table.call) return undefined
  if (method?.name !== 'findFirst' || !method.call) return undefined
  return { client: before(chain, 3), model: table.name, answer: 'row' }
}

function drizzleSelect(_: SourceCode, chain: Chain): Lookup | undefined {
  const at = chain.steps.findIndex(({ name, call }) => name === 'select' && call)
  const from = chain.steps[at + 1]
  if (at === -1 || from?.name !== 'from' || chain.steps.some(isForUpdate)) return undefined
  const model = tableOf(from)
  return model === undefined
    ? undefined
    : { client: before(chain, chain.steps.length - at), model, answer: 'list' }
}

function drizzleCreation(_: SourceCode, chain: Chain): RowAccess | undefined {
  const at = chain.steps.findIndex(({ name, call }) => name === 'insert' && call)
  const insert = chain.steps[at]
  if (insert === undefined || chain.steps[at + 1]?.name !== 'values') return undefined
  const model = tableOf(insert)
  if (model === undefined || chain.steps.some(toleratesRows)) return undefined
  return { client: before(chain, chain.steps.length - at), model }
}

function kyselyLookup(_: SourceCode, chain: Chain): Lookup | undefined {
  const at = chain.steps.findIndex(({ name, call }) => name === 'selectFrom' && call)
  const last = chain.steps.at(-1)
  if (at === -1 || last === undefined || chain.steps.some(isForUpdate)) return undefined
  const model = tableOf(chain.steps[at])
  const answers: Readonly<Record<string, 'row' | 'list'>> = {
    executeTakeFirst: 'row',
    execute: 'list',
  }
  const answer = answers[last.name]
  if (model === undefined || answer === undefined) return undefined
  return { client: before(chain, chain.steps.length - at), model, answer }
}

function kyselyCreation(_: SourceCode, chain: Chain): RowAccess | undefined {
  const at = chain.steps.findIndex(({ name, call }) => name === 'insertInto' && call)
  const model = tableOf(chain.steps[at])
  const isExecuted = chain.steps.at(-1)?.name.startsWith('execute') ?? false
  if (model === undefined || !isExecuted || chain.steps.some(toleratesRows)) return undefined
  return { client: before(chain, chain.steps.length - at), model }
}

function isForUpdate({ name }: Step): boolean {
  return name === 'for' || name === 'forUpdate' || name === 'forNoKeyUpdate'
}

/** Whether an insert says what happens with rows that are there already. */
function toleratesRows({ name }: Step): boolean {
  return /^(onConflict|onDuplicateKey|ignore|orIgnore|orReplace)/.test(name)
}

/** The table that a step names: `users`, `schema.users` or `'users'`. */
function tableOf(step: Step | undefined): string | undefined {
  const [table] = step?.call?.type === 'CallExpression' ? step.call.arguments : []
  if (table?.type === 'Identifier') return table.name
  if (table?.type === 'MemberExpression') return propertyName(table)
  return table?.type === 'Literal' && typeof table.value === 'string' ? table.value : undefined
}

const name = String.raw`"?([\w.]+)"?`
const selected = new RegExp(String.raw`^\s*select\b[^;]*?\bfrom\s+${name}`, 'i')
const inserted = new RegExp(String.raw`^\s*insert\s+into\s+${name}`, 'i')

function pgLookup(_: SourceCode, chain: Chain): Lookup | undefined {
  const access = pgAccess(
    chain,
    selected,
    /\bfor\s+(no\s+key\s+)?update\b|\bcount\s*\(|\bexists\s*\(/i,
  )
  return access && { ...access, answer: 'result' }
}

function pgCreation(_: SourceCode, chain: Chain): RowAccess | undefined {
  return pgAccess(chain, inserted, /\bon\s+(conflict|duplicate)\b|\bselect\b/i)
}

function pgAccess(chain: Chain, wanted: RegExp, unwanted: RegExp): RowAccess | undefined {
  const query = chain.steps.at(-1)
  const sql = query?.name === 'query' ? sqlOf(query) : undefined
  const model = sql === undefined ? undefined : wanted.exec(sql)?.[1]
  if (sql === undefined || model === undefined || unwanted.test(sql)) return undefined
  return { client: before(chain, 1), model: model.toLowerCase() }
}
