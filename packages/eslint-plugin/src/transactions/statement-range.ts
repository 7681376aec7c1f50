import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { sqlOf } from '../clients/statements.ts'
import {
  before,
  type Chain,
  chainOf,
  isSamePath,
  type Step,
  variableRoot,
} from '../syntax/chain.ts'
import {
  ancestorsOf,
  functionAround,
  initializerOf,
  type Node,
  unawaited,
  walk,
} from '../syntax/node.ts'
import type { Transaction } from './transaction.ts'

/** The transactions that a block opens and commits by statements of its own: BEGIN … COMMIT on one client. */
export function statementRanges(source: SourceCode, block: TSESTree.BlockStatement): Transaction[] {
  const ranges: Transaction[] = []
  let opened: Opened | undefined
  for (const [statement, chain] of statementsOf(source, [block])) {
    const control = controlOf(chain)
    if (control === undefined) continue
    const client = before(chain, 1)
    // Who does not wait for BEGIN uses callbacks, and no promises.
    if (control.does === 'begin' && isAwait(statement))
      opened = { at: statement, client, kind: control.kind }
    if (control.does === 'begin' || opened === undefined) continue
    if (!isSamePath(opened.client, client)) continue
    if (control.does === 'commit') ranges.push(...rangeOf(source, block, opened, statement))
    opened = undefined
  }
  return ranges
}

function isAwait(statement: Node): boolean {
  return statement.type === 'ExpressionStatement' && statement.expression.type === 'AwaitExpression'
}

type Kind = 'pg' | 'typeorm'

interface Control {
  readonly kind: Kind
  readonly does: 'begin' | 'commit' | 'roll back'
}

/** The awaited calls that are statements of the block itself, or of a `try` in it, in their order. */
function* statementsOf(
  source: SourceCode,
  blocks: readonly TSESTree.BlockStatement[],
): Generator<[Node, Chain]> {
  for (const statement of blocks.flatMap(({ body }) => body)) {
    if (statement.type === 'TryStatement') {
      yield* statementsOf(source, [statement.block])
      continue
    }
    if (statement.type !== 'ExpressionStatement') continue
    const chain = chainOf(source, unawaited(statement.expression))
    if (chain !== undefined) yield [statement, chain]
  }
}

function controlOf({ steps }: Chain): Control | undefined {
  const last = steps.at(-1)
  if (last?.call === undefined) return undefined
  return last.name === 'query' ? controlBySql(last) : controlByMethod(last)
}

function controlBySql(step: Step): Control | undefined {
  const sql = sqlOf(step)?.trim()
  if (sql === undefined) return undefined
  if (/^(BEGIN|START\s+TRANSACTION)\b[^;]*;?$/i.test(sql)) return { kind: 'pg', does: 'begin' }
  if (/^(COMMIT|END)\b[^;]*;?$/i.test(sql)) return { kind: 'pg', does: 'commit' }
  return /^(ROLLBACK|ABORT)\s*;?$/i.test(sql) ? { kind: 'pg', does: 'roll back' } : undefined
}

function controlByMethod({ name }: Step): Control | undefined {
  if (name === 'startTransaction') return { kind: 'typeorm', does: 'begin' }
  if (name === 'commitTransaction') return { kind: 'typeorm', does: 'commit' }
  return name === 'rollbackTransaction' ? { kind: 'typeorm', does: 'roll back' } : undefined
}

interface Opened {
  readonly at: Node
  readonly client: Chain
  readonly kind: Kind
}

function rangeOf(
  source: SourceCode,
  block: TSESTree.BlockStatement,
  opened: Opened,
  commit: Node,
): Transaction[] {
  const root = openerOf(source, opened.client, opened.kind)
  const span: TSESTree.Range = [opened.at.range[1], commit.range[0]]
  const after = endedEarlier(source, block, opened.client, span)
  if (after === undefined) return []
  return [
    {
      name: opened.kind === 'pg' ? 'BEGIN … COMMIT' : 'startTransaction',
      region: block,
      span,
      after,
      libraries: [opened.kind],
      handle: opened.client,
      takesHandle: true,
      ...(root && { root }),
    },
  ]
}

const branches: ReadonlySet<string> = new Set(['BlockStatement', 'SwitchCase'])

/**
 * What comes after a COMMIT or ROLLBACK of a branch: `if (none) { await client.query('ROLLBACK'); … return }`. Nothing if
 * a function ends the transaction, because it may be called from anywhere.
 */
function endedEarlier(
  source: SourceCode,
  block: TSESTree.BlockStatement,
  client: Chain,
  span: TSESTree.Range,
): TSESTree.Range[] | undefined {
  const around = functionAround(block)
  const after: TSESTree.Range[] = []
  let isByFunction = false
  walk(source, around ?? block, (node) => {
    if (node.type !== 'CallExpression') return
    const chain = chainOf(source, node)
    if (chain === undefined || controlOf(chain) === undefined) return
    if (!isSamePath(before(chain, 1), client)) return
    if (functionAround(node) !== around) isByFunction = true
    const branch = [...ancestorsOf(node)].find(({ type }) => branches.has(type))
    const isWithin = node.range[0] >= span[0] && node.range[1] <= span[1]
    if (isWithin && branch !== undefined) after.push([node.range[1], branch.range[1]])
  })
  return isByFunction ? undefined : after
}

/** What the client of the transaction was taken from: `pool` of `const client = await pool.connect()`. */
function openerOf(source: SourceCode, client: Chain, kind: Kind): Chain | undefined {
  const variable = client.steps.length === 0 ? variableRoot(client) : undefined
  const init = variable && initializerOf(variable)?.init
  const chain = init ? chainOf(source, unawaited(init)) : undefined
  const last = chain?.steps.at(-1)
  if (chain === undefined || last?.call === undefined) return undefined
  const opens = kind === 'pg' ? last.name === 'connect' : last.name === 'createQueryRunner'
  return opens ? before(chain, 1) : undefined
}
