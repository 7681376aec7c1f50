import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Rule, SourceCode } from 'eslint'
import type { TSESTree } from '@typescript-eslint/types'
import { modulesImported } from '../syntax/imports.ts'
import { isFunction, unwrapped, variableOf } from '../syntax/node.ts'

const testRunners =
  /^(vitest|@jest\/globals|node:test|bun:test|@playwright\/test|mocha|chai|ava|tap)$/
const testPath =
  /(^|[\\/])(__tests__|__mocks__|tests?|spec|e2e|fixtures?)[\\/]|[._-](test|spec|e2e)\.[cm]?[jt]sx?$/
const scriptPath =
  /(^|[\\/])(scripts?|bin|tools?|prisma|seeds?|seeders?|migrations?|fixtures?)[\\/]|(^|[\\/.-])seed[^\\/]*\.[cm]?[jt]sx?$/i

/** Whether a file is a test: tests put statements where they do not belong, to see what happens. */
export function isTest(context: Rule.RuleContext): boolean {
  if (testPath.test(pathInProject(context))) return true
  for (const module of modulesImported(context.sourceCode)) {
    if (testRunners.test(module)) return true
  }
  return false
}

/** Whether a file is a program that somebody runs alone: a script, a seed, a migration. */
export function isScript(context: Rule.RuleContext): boolean {
  const { sourceCode } = context
  if (scriptPath.test(pathInProject(context)) || sourceCode.text.startsWith('#!')) return true
  const body = sourceCode.ast.body as unknown as TSESTree.ProgramStatement[]
  return body.some((statement) => runsProgram(sourceCode, statement))
}

/** `main()`, `await seed()`, `main().then(…)` at the top of a file. */
function runsProgram(source: SourceCode, statement: TSESTree.ProgramStatement): boolean {
  if (statement.type !== 'ExpressionStatement') return false
  let call: TSESTree.Node = unwrapped(statement.expression)
  for (;;) {
    if (
      call.type === 'AwaitExpression' ||
      (call.type === 'UnaryExpression' && call.operator === 'void')
    ) {
      call = unwrapped(call.argument)
    } else if (call.type === 'CallExpression' && call.callee.type === 'MemberExpression') {
      call = unwrapped(call.callee.object)
    } else break
  }
  if (call.type !== 'CallExpression') return false
  const { callee } = call
  if (isFunction(callee)) return true
  const variable = callee.type === 'Identifier' ? variableOf(source, callee) : undefined
  const [definition] = variable?.defs ?? []
  return definition !== undefined && definition.type !== 'ImportBinding'
}

function pathInProject({ filename, cwd }: Rule.RuleContext): string {
  return filename.startsWith(cwd) ? filename.slice(cwd.length) : filename
}

/** Packages that make statements of the root client part of the transaction around them. */
const ambient = [
  'typeorm-transactional',
  'typeorm-transactional-cls-hooked',
  '@nestjs-cls/transactional',
  '@transactional/core',
]

/** Whether clients of this file may know by themselves which transaction they are in. */
export function hasAmbientTransactions({ filename, sourceCode }: Rule.RuleContext): boolean {
  const modules = modulesImported(sourceCode)
  if (modules.has('node:async_hooks') || modules.has('async_hooks')) return true
  const dependencies = dependenciesAround(dirname(filename))
  return ambient.some((name) => modules.has(name) || dependencies.has(name))
}

const dependenciesOf = new Map<string, ReadonlySet<string>>()

/** What the package.json of a folder and of those above it depend on. */
function dependenciesAround(folder: string): ReadonlySet<string> {
  const before = dependenciesOf.get(folder)
  if (before !== undefined) return before
  const parent = dirname(folder)
  const above = parent === folder ? [] : dependenciesAround(parent)
  const found = new Set([...readDependencies(folder), ...above])
  dependenciesOf.set(folder, found)
  return found
}

function readDependencies(folder: string): readonly string[] {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const { dependencies } = (manifest ?? {}) as { readonly dependencies?: object }
    return Object.keys(dependencies ?? {})
  } catch {
    // There is none in this folder, or none that can be read.
    return []
  }
}

const locking = /(?<![bc])lock(s|er|ing)?\b|mutex|semaphore|runExclusive|advisory/i
const uniqueViolation =
  /P2002|23505|ER_DUP_ENTRY|unique_?(violation|constraint)|is_?(unique|duplicate)/i

/** Whether a file takes locks or catches unique violations anywhere: it may do so around the functions it calls. */
export function protectsByItself({ text }: SourceCode): boolean {
  return locking.test(text) || uniqueViolation.test(text)
}
