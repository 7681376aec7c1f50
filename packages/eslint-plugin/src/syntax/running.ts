import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { isWholeChain } from './chain.ts'
import {
  ancestorsOf,
  type FunctionNode,
  functionAround,
  isFunction,
  type Node,
  propertyName,
  unwrapped,
} from './node.ts'

/** Methods of arrays that call what they are given before they return. */
const iterations = new Set([
  'map',
  'flatMap',
  'forEach',
  'filter',
  'some',
  'every',
  'find',
  'reduce',
])

const combinators = new Set(['all', 'allSettled', 'race', 'any'])

/**
 * Whether a node runs as part of a piece of code: of the body of a function or of a block. Callbacks that somebody may
 * call later, or never, are not part of it.
 */
export function runsWithin(source: SourceCode, node: Node, region: Node, depth = 0): boolean {
  for (
    let around = functionAround(node);
    around && around !== region && isInside(around, region);
    around = functionAround(around)
  ) {
    if (!isCalledAtOnce(source, around, region, depth)) return false
  }
  return isInside(node, region)
}

function isInside(node: Node, region: Node): boolean {
  for (const ancestor of ancestorsOf(node)) if (ancestor === region) return true
  return false
}

function isCalledAtOnce(
  source: SourceCode,
  callback: FunctionNode,
  region: Node,
  depth: number,
): boolean {
  // A generator runs as far as somebody asks it to.
  if (callback.generator) return false
  const { parent } = callback
  if (callback.type === 'FunctionDeclaration' || parent.type === 'VariableDeclarator') {
    return (
      depth <= 3 &&
      callsOf(source, callback).some((call) => runsWithin(source, call, region, depth + 1))
    )
  }
  if (parent.type === 'CallExpression') {
    return parent.callee === callback || isIteration(parent)
  }
  const isExecutor = parent.type === 'NewExpression' && parent.arguments[0] === callback
  return isExecutor && parent.callee.type === 'Identifier' && parent.callee.name === 'Promise'
}

/** The calls of a function by the name that it was declared with. */
function callsOf(source: SourceCode, declared: FunctionNode): Node[] {
  const { parent } = declared
  const isNamed = parent.type === 'VariableDeclarator' && parent.id.type === 'Identifier'
  const declaration = isNamed ? parent : declared
  if (!isNamed && declared.type !== 'FunctionDeclaration') return []
  const [variable] = source.getDeclaredVariables(declaration as never)
  return (variable?.references ?? []).flatMap(({ identifier }) => {
    const { parent: call } = identifier as unknown as Node
    return call?.type === 'CallExpression' && call.callee === (identifier as unknown) ? [call] : []
  })
}

/** Whether a call runs the function it is given for each element, like `items.map(…)`. */
export function isIteration(call: TSESTree.CallExpression): boolean {
  const callee = unwrapped(call.callee)
  return callee.type === 'MemberExpression' && iterations.has(propertyName(callee) ?? '')
}

/** Whether somebody waits for the promise that this expression makes, here and now. */
export function isAwaited(node: Node): boolean {
  let child = node
  for (;;) {
    const { parent } = child
    if (parent === undefined) return false
    if (parent.type === 'AwaitExpression') return true
    const returning = returningFunction(parent, child)
    const next = returning === undefined ? passedOn(parent, child) : resultOf(returning)
    if (typeof next === 'boolean') return next
    child = next
  }
}

/**
 * Whether the code of the region waits for this expression, also through callbacks and functions of its own: whoever
 * does not wait for a function does not wait for what the function waits for.
 */
export function isAwaitedBy(source: SourceCode, region: Node, node: Node, depth = 0): boolean {
  if (!isAwaited(node) || depth > 3) return false
  const around = functionAround(node)
  if (around === undefined || around === region || !isInside(around, region)) return true
  const { parent } = around
  if (parent.type === 'NewExpression') return isAwaitedBy(source, region, parent, depth + 1)
  if (parent.type === 'CallExpression') {
    return !isForEach(parent) && isAwaitedBy(source, region, parent, depth + 1)
  }
  return callsOf(source, around).some(
    (call) => isInside(call, region) && isAwaitedBy(source, region, call, depth + 1),
  )
}

function returningFunction(parent: Node, child: Node): FunctionNode | undefined {
  if (parent.type === 'ReturnStatement') return functionAround(parent)
  return parent.type === 'ArrowFunctionExpression' && parent.body === child ? parent : undefined
}

/** Where the result of a function goes: to a call that collects it, or to somebody who waits for it. */
function resultOf(returning: FunctionNode): Node | boolean {
  const { parent } = returning
  if (parent.type !== 'CallExpression') return true
  if (parent.callee === returning) return parent
  if (!isIteration(parent)) return true
  return isForEach(parent) ? false : parent
}

/** The expression whose value is that of the child, or whether it ends here. */
function passedOn(parent: Node, child: Node): Node | boolean {
  switch (parent.type) {
    case 'LogicalExpression':
    case 'ArrayExpression':
    case 'SpreadElement':
      return parent
    case 'ConditionalExpression':
      return parent.test === child ? false : parent
    case 'MemberExpression': {
      const name = parent.object === child ? propertyName(parent) : undefined
      return name === 'then' || name === 'catch' || name === 'finally' ? parent : false
    }
    case 'CallExpression':
      return parent.callee === child || isCombinator(parent) ? parent : false
    default:
      return unwrapped(parent) === parent ? false : parent
  }
}

function isForEach(call: TSESTree.CallExpression): boolean {
  const callee = unwrapped(call.callee)
  return callee.type === 'MemberExpression' && propertyName(callee) === 'forEach'
}

/** `Promise.all(…)` and its like. */
function isCombinator(call: TSESTree.CallExpression): boolean {
  const { callee } = call
  return (
    callee.type === 'MemberExpression' &&
    callee.object.type === 'Identifier' &&
    callee.object.name === 'Promise' &&
    combinators.has(propertyName(callee) ?? '')
  )
}

/** Whether an error of this expression is handled by `.catch(…)` or `.then(…, …)`. */
export function handlesErrors(node: Node): boolean {
  const call = unwrapped(node)
  if (call.type !== 'CallExpression') return false
  const callee = unwrapped(call.callee)
  if (callee.type !== 'MemberExpression') return false
  const name = propertyName(callee)
  const isHandled = name === 'catch' || (name === 'then' && call.arguments.length > 1)
  return isHandled || handlesErrors(callee.object)
}

/** The promise that `.then(…)` and `.finally(…)` were put behind. */
export function promiseBehind(node: Node): Node {
  const call = unwrapped(node)
  if (call.type !== 'CallExpression') return call
  const callee = unwrapped(call.callee)
  if (callee.type !== 'MemberExpression') return call
  const name = propertyName(callee)
  return name === 'then' || name === 'finally' ? promiseBehind(callee.object) : call
}

/** Whether a node is in the `catch` or `finally` of a `try` within the region, or in a callback of `.catch(…)`. */
export function isAfterError(node: Node, region: Node): boolean {
  let child = node
  for (const ancestor of ancestorsOf(node)) {
    if (ancestor === region) return false
    if (ancestor.type === 'CatchClause') return true
    if (ancestor.type === 'TryStatement' && ancestor.finalizer === child) return true
    child = ancestor
    if (isFunction(ancestor) && ancestor.parent.type === 'CallExpression') {
      const callee = unwrapped(ancestor.parent.callee)
      if (callee.type === 'MemberExpression' && propertyName(callee) === 'catch') return true
    }
  }
  return false
}

/** Whether a node is a chain of properties and calls, and all of it. */
export function isChain(node: Node): boolean {
  const isPart =
    node.type === 'CallExpression' ||
    node.type === 'TaggedTemplateExpression' ||
    node.type === 'MemberExpression'
  return isPart && isWholeChain(node)
}
