import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { sameClient, type Step } from '../syntax/chain.ts'
import { imports } from '../syntax/imports.ts'
import { type Node, textOf } from '../syntax/node.ts'
import type { Library } from './library.ts'

/** When a statement goes to the server. */
export type Sent =
  /** As soon as it is called. */
  | 'at once'
  /** When somebody waits for it. */
  | 'when awaited'

/** A statement that a chain makes, and how. */
export interface Statement {
  readonly library: Library
  readonly sent: Sent
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

const prismaActions = words(
  'findUnique findUniqueOrThrow findFirst findFirstOrThrow findMany create createMany ' +
    'createManyAndReturn update updateMany updateManyAndReturn upsert delete deleteMany aggregate ' +
    'groupBy count',
)
const prismaRaw = words('$queryRaw $queryRawUnsafe $executeRaw $executeRawUnsafe')
const drizzleWrites = new Map([
  ['insert', words('values select')],
  ['update', words('set')],
  ['delete', words('where returning')],
  ['select', words('from')],
  ['selectDistinct', words('from')],
])
const kyselyStarts = words('insertInto updateTable deleteFrom mergeInto replaceInto selectFrom')
const kyselyEnds = words('execute executeTakeFirst executeTakeFirstOrThrow')
const typeOrmMethods = words(
  'save insert update upsert delete remove softDelete softRemove restore recover find findBy findOne ' +
    'findOneBy findOneOrFail findOneByOrFail findAndCount findAndCountBy count countBy exists existsBy ' +
    'sum average minimum maximum increment decrement query',
)
const typeOrmEnds = words(
  'execute getMany getOne getOneOrFail getRawMany getRawOne getManyAndCount getCount getExists',
)
const promiseMethods = words('then catch finally')

/** The statement that these steps make, if a client of the library stands before them. */
export function statementOf(library: Library, given: readonly Step[]): Statement | undefined {
  const steps = withoutPromiseMethods(withoutOpening(given))
  const isStatement = {
    prisma: isPrisma,
    drizzle: isDrizzle,
    kysely: isKysely,
    typeorm: isTypeOrm,
    pg: isPg,
  }[library]
  if (!isStatement(steps)) return undefined
  const isLazy = library === 'prisma' || library === 'drizzle'
  const isAsked = given.some(({ name, call }) => call && promiseMethods.has(name))
  return { library, sent: isLazy && !isAsked ? 'when awaited' : 'at once' }
}

/** The libraries that a handle may be of, if only its use can say. */
export function librariesOf(source: SourceCode): readonly Library[] {
  // Their statements cannot be mistaken; those of the others are told by what the file imports.
  const certain: Library[] = ['prisma', 'kysely', 'pg']
  if (imports(source, 'drizzle-orm')) certain.push('drizzle')
  if (imports(source, 'typeorm')) certain.push('typeorm')
  return certain
}

/** Without calls that give the same client, like `withSchema('shop')`. */
function withoutOpening(steps: readonly Step[]): readonly Step[] {
  const at = steps.findIndex(({ name, call }) => !call || !sameClient.has(name))
  return at <= 0 ? steps : steps.slice(at)
}

function withoutPromiseMethods(steps: readonly Step[]): readonly Step[] {
  const at = steps.findIndex(({ name, call }) => call && promiseMethods.has(name))
  return at === -1 ? steps : steps.slice(0, at)
}

function isPrisma([first, second]: readonly Step[]): boolean {
  if (first === undefined) return false
  if (first.call !== undefined) return prismaRaw.has(first.name)
  return second?.call !== undefined && prismaActions.has(second.name)
}

function isDrizzle(steps: readonly Step[]): boolean {
  const [first, second, third] = steps
  if (first === undefined) return false
  if (first.name === 'query') {
    const isRead = third?.name === 'findFirst' || third?.name === 'findMany'
    return first.call === undefined && isRead && third.call !== undefined
  }
  if (first.call === undefined) return false
  if (first.name === 'execute') return first.call.type === 'CallExpression' && hasArguments(first)
  const following = drizzleWrites.get(first.name)
  if (following === undefined) return false
  // `.run()` and its like belong to databases that answer without a promise; `.as(…)` makes a subquery.
  if (steps.some(({ name }) => /^(run|all|get|as|prepare|toSQL|\$dynamic|getSQL)$/.test(name)))
    return false
  if (first.name === 'delete' && steps.length === 1) return hasArguments(first)
  return second?.call !== undefined && following.has(second.name)
}

function isKysely(steps: readonly Step[]): boolean {
  const [first] = steps
  const last = steps.at(-1)
  if (first?.call === undefined || last?.call === undefined) return false
  if (!kyselyEnds.has(last.name) || steps.length < 2) return false
  return kyselyStarts.has(first.name)
}

function isTypeOrm(steps: readonly Step[]): boolean {
  const rest = steps.filter(
    ({ name }) => name !== 'manager' && name !== 'getRepository' && name !== 'getTreeRepository',
  )
  const [first] = rest
  const last = rest.at(-1)
  if (first?.call === undefined || last?.call === undefined) return false
  if (first.name === 'createQueryBuilder') return typeOrmEnds.has(last.name)
  return rest.length === 1 && typeOrmMethods.has(first.name)
}

/** `query` with a text, and without the callback that takes its answer. */
function isPg([first, ...others]: readonly Step[]): boolean {
  if (first?.name !== 'query' || others.length > 0) return false
  if (first.call?.type !== 'CallExpression') return false
  const [text, values, ...more] = first.call.arguments
  if (text === undefined || more.length > 0) return false
  const isText = textOf(text) !== undefined || text.type === 'ObjectExpression'
  return isText && (values === undefined || isValues(values))
}

function isValues(node: Node): boolean {
  return node.type === 'ArrayExpression'
}

function hasArguments({ call }: Step): boolean {
  return call?.type === 'CallExpression' && call.arguments.length > 0
}

/** The text of a statement of pg, if it is written where it is sent. */
export function sqlOf({ call }: Step): string | undefined {
  if (call?.type !== 'CallExpression') return undefined
  const [first] = call.arguments
  if (first?.type === 'ObjectExpression') return textOf(textProperty(first))
  return textOf(first)
}

function textProperty(object: TSESTree.ObjectExpression): Node | undefined {
  for (const property of object.properties) {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') continue
    if (property.key.name === 'text') return property.value
  }
  return undefined
}
