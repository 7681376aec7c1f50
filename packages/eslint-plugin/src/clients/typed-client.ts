import type { SourceCode } from 'eslint'
import type { Node } from '../syntax/node.ts'
import { isPrismaRootName, type Known, knownType } from './library.ts'

/** As much of a symbol of TypeScript as we read; the compiler itself is the user's, and not imported. */
interface TypeSymbol {
  readonly name: string
  readonly declarations?: readonly { getSourceFile(): { readonly fileName: string } }[]
}

interface Type {
  readonly symbol?: TypeSymbol
  readonly aliasSymbol?: TypeSymbol
  readonly types?: readonly Type[]
  isUnion(): boolean
  isIntersection(): boolean
  isClassOrInterface(): boolean
  getBaseTypes?(): readonly Type[] | undefined
  readonly target?: Type
}

interface TypeServices {
  readonly program?: unknown
  getTypeAtLocation?(node: Node): Type
}

/** What an expression is by its type; nothing where the linter has no types. */
export function typedClient(source: SourceCode, node: Node): Known | undefined {
  const services = source.parserServices as TypeServices | undefined
  if (!services?.program || !services.getTypeAtLocation) return undefined
  return knownOf(services.getTypeAtLocation(node))
}

const mostBases = 6

function knownOf(type: Type, depth = 0): Known | undefined {
  if (depth > mostBases || type.isUnion()) return undefined
  if (type.isIntersection()) {
    for (const part of type.types ?? []) {
      const known = knownOf(part, depth + 1)
      if (known !== undefined) return known
    }
    return undefined
  }
  for (const symbol of [type.aliasSymbol, type.symbol]) {
    const known = symbol && knownSymbol(symbol)
    if (known !== undefined) return known
  }
  const declared = type.target ?? type
  if (!declared.isClassOrInterface()) return undefined
  for (const base of declared.getBaseTypes?.() ?? []) {
    const known = knownOf(base, depth + 1)
    // Of a class that extends a client we know what it can do, and of a client alone that it is no transaction.
    if (known !== undefined) return known
  }
  return undefined
}

function knownSymbol(symbol: TypeSymbol): Known | undefined {
  for (const declaration of symbol.declarations ?? []) {
    const packageName = packageOf(declaration.getSourceFile().fileName)
    if (packageName === undefined) continue
    if (isPrismaRootName(symbol.name) && /prisma/i.test(packageName)) {
      return { library: 'prisma', isRoot: true }
    }
    const known = knownType(packageName, symbol.name)
    if (known !== undefined) return known
  }
  return undefined
}

function packageOf(fileName: string): string | undefined {
  const inModules = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(fileName)?.[1]
  if (inModules !== undefined) return inModules.replace(/^@types\//, '')
  // Since version 7, Prisma generates its client into the sources.
  return /\/generated\/|prisma/i.test(fileName) ? 'prisma' : undefined
}
