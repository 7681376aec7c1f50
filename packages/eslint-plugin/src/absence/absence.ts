import type { TSESTree } from '@typescript-eslint/types'
import type { Scope, SourceCode } from 'eslint'
import {
  ancestorsOf,
  functionAround,
  isWithin,
  type Node,
  propertyName,
  unwrapped,
  variableOf,
} from '../syntax/node.ts'
import type { Lookup } from './row-access.ts'

/** A variable that holds what a look-up has found. */
export interface Found {
  readonly variable: Scope.Variable
  /** What of it says whether there was a row. */
  readonly answer: Lookup['answer']
}

/** Whether a node is reached only if the look-up has found nothing. */
export function isReachedByAbsence(source: SourceCode, node: Node, found: Found): boolean {
  const around = functionAround(node)
  let child = node
  for (const ancestor of ancestorsOf(node)) {
    if (ancestor === around) return false
    if (isBranchOfAbsence(source, ancestor, child, found)) return true
    if (ancestor.type === 'BlockStatement' && isAfterExit(source, ancestor, child, found))
      return true
    child = ancestor
  }
  return false
}

/** `if (!found) { here }`, `if (found) … else { here }`, `found ?? here`. */
function isBranchOfAbsence(source: SourceCode, node: Node, child: Node, found: Found): boolean {
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    if (node.consequent === child) return impliesAbsence(source, node.test, true, found)
    return node.alternate === child && impliesAbsence(source, node.test, false, found)
  }
  if (node.type !== 'LogicalExpression' || node.right !== child) return false
  return impliesAbsence(source, node.left, node.operator === '&&', found)
}

/** `if (found) throw …` or `return …` before it, in the same block. */
function isAfterExit(
  source: SourceCode,
  block: TSESTree.BlockStatement,
  child: Node,
  found: Found,
): boolean {
  return block.body.some(
    (statement) =>
      statement.type === 'IfStatement' &&
      statement.range[1] <= child.range[0] &&
      leaves(statement.consequent) &&
      statement.alternate === null &&
      impliesAbsence(source, statement.test, false, found),
  )
}

function leaves(statement: TSESTree.Statement): boolean {
  const last = statement.type === 'BlockStatement' ? statement.body.at(-1) : statement
  return last?.type === 'ReturnStatement' || last?.type === 'ThrowStatement'
}

/** Whether a test with this outcome says that nothing was found. */
function impliesAbsence(source: SourceCode, given: Node, outcome: boolean, found: Found): boolean {
  const test = unwrapped(given)
  if (test.type === 'UnaryExpression' && test.operator === '!') {
    return impliesAbsence(source, test.argument, !outcome, found)
  }
  if (test.type === 'LogicalExpression' && test.operator !== '??') {
    const sides = [test.left, test.right].map((side) =>
      impliesAbsence(source, side, outcome, found),
    )
    const isEnough = (test.operator === '&&') === outcome
    return isEnough ? sides.some(Boolean) : sides.every(Boolean)
  }
  if (test.type === 'BinaryExpression') {
    const absentIf = comparedWithAbsence(source, test, found)
    return absentIf === outcome
  }
  return !outcome && isSubject(source, test, found)
}

/** The outcome of a comparison that means absence; none if it compares something else. */
function comparedWithAbsence(
  source: SourceCode,
  { left, operator, right }: TSESTree.BinaryExpression,
  found: Found,
): boolean | undefined {
  if (left.type === 'PrivateIdentifier' || !isSubject(source, left, found)) return undefined
  const value = valueOf(right)
  if (value === 'nothing' || value === 0) {
    if (operator === '===' || operator === '==') return true
    if (operator === '!==' || operator === '!=') return false
    return operator === '>' && value === 0 ? false : undefined
  }
  if (value !== 1) return undefined
  if (operator === '<') return true
  return operator === '>=' ? false : undefined
}

function valueOf(node: Node): 'nothing' | 0 | 1 | undefined {
  if (node.type === 'Identifier') return node.name === 'undefined' ? 'nothing' : undefined
  if (node.type !== 'Literal') return undefined
  if (node.value === null) return 'nothing'
  return node.value === 0 || node.value === 1 ? node.value : undefined
}

/** Whether an expression is falsy exactly if nothing was found. */
function isSubject(source: SourceCode, given: Node, found: Found): boolean {
  const steps: string[] = []
  let node = unwrapped(given)
  while (node.type === 'MemberExpression') {
    const isFirst = node.computed && node.property.type === 'Literal' && node.property.value === 0
    steps.unshift(isFirst ? '0' : (propertyName(node) ?? '?'))
    node = unwrapped(node.object)
  }
  if (node.type !== 'Identifier' || variableOf(source, node) !== found.variable) return false
  return subjects[found.answer].includes(steps.join('.'))
}

const subjects: Readonly<Record<Lookup['answer'], readonly string[]>> = {
  row: [''],
  list: ['length', '0'],
  result: ['rows.length', 'rows.0', 'rowCount'],
}

/** Whether an error of this node is caught in its function. */
export function isInTry(node: Node): boolean {
  const around = functionAround(node)
  for (const ancestor of ancestorsOf(node)) {
    if (ancestor === around) return false
    if (ancestor.type !== 'TryStatement' || ancestor.handler === null) continue
    if (isWithin(node, ancestor.block)) return true
  }
  return false
}
