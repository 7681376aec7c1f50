import { dirname, relative, resolve } from 'node:path'
import type { Client, Import } from './clients.ts'
import {
  awaitsIn,
  hasDefaults,
  isTyped,
  lacksNodeTypes,
  type Style,
  styleOf,
} from './module-style.ts'
import { type PrismaSchema, readPrismaSchema } from './prisma-schema.ts'
import type { Project } from './project.ts'

/** What is written beside the client. */
export interface Terms {
  /** Where it goes, which its imports depend on. */
  readonly file: string
  /** The schema, if it is not the usual one. */
  readonly schema: string | undefined
}

/** The text of the file for a client. */
export function holdfastFile(client: Client, project: Project, { file, schema }: Terms): string {
  const style = styleOf(project, file)
  const [name = ''] = client.from.split('(')
  const imports = [
    ...client.imports.map((each) =>
      each.from === '<generated>' ? { ...each, from: prismaClient(project, file) } : each,
    ),
    { from: 'holdfast', names: ['createHoldfast'] },
    { from: `holdfast/drivers/${client.driver}`, names: [name] },
  ].toSorted((a, b) => (a.from < b.from ? -1 : 1))
  const body = client.body({ typed: isTyped(file), awaits: awaitsIn(project, file) })
  const options = schema === undefined ? '' : `, { schema: ${quoted(schema)} }`
  const nodeTypes = lacksNodeTypes(project, file) ? '/// <reference types="node" />\n' : ''
  const text = `${nodeTypes}${importsText(imports, style, project, isTyped(file))}

const connectionString = process.env['DATABASE_URL']
if (connectionString === undefined) throw new Error('DATABASE_URL is not set')

// If your project makes this client elsewhere, import it from there: one pool is enough.
${body}

/** Locks, quotas, leases and the rest, in the transactions of this client. */
export const hf = createHoldfast(${client.from}${options})
`
  if (style === 'require') return exportedAtEnd(text, 'module.exports =')
  return style === 'import-require' ? exportedAtEnd(text, 'export =') : text
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`
}

function importsText(
  imports: readonly Import[],
  style: Style,
  project: Project,
  typed: boolean,
): string {
  if (style === 'import-require') return requiredText(imports)
  return imports
    .map((each) =>
      style === 'require' ? requireText(each, typed) : importText(each, style, project),
    )
    .join('\n')
}

function importText({ from, names, whole, is }: Import, style: Style, project: Project): string {
  const what = names === undefined ? whole : `{ ${names.join(', ')} }`
  if (names !== undefined || is === 'default') return `import ${what} from '${from}'`
  if (style === 'esm') {
    // Not even an object has a default if TypeScript makes none.
    const isWhole = is === 'object' && !hasDefaults(project)
    return `import ${isWhole ? '* as ' : ''}${what} from '${from}'`
  }
  // An object is the same whatever the settings are; a function needs other words if TypeScript makes no default of it.
  if (is === 'object') return `import * as ${what} from '${from}'`
  const { module = '', esModuleInterop = !/^commonjs$/i.test(module) } = project.compiler ?? {}
  return esModuleInterop ? `import ${what} from '${from}'` : `import ${what} = require('${from}')`
}

/** In TypeScript that Node runs, where `import x = require('x')` is not understood. */
function requireText({ from, names, whole }: Import, typed: boolean): string {
  const what = names === undefined ? whole : `{ ${names.join(', ')} }`
  return `const ${what} = require('${from}')${typed ? ` as typeof import('${from}')` : ''}`
}

/** Modules first, as a whole; then what is used of them. */
function requiredText(imports: readonly Import[]): string {
  const lines = imports.map(({ from, names, whole, is }) => {
    if (names === undefined && is !== 'default') return [`import ${whole} = require('${from}')`]
    const words = from.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
    const name = [...words, 'module'].map((word, at) =>
      at === 0 ? word : `${word[0]?.toUpperCase()}${word.slice(1)}`,
    )
    return [
      `import ${name.join('')} = require('${from}')`,
      `const { ${names?.join(', ') ?? whole} } = ${name.join('')}`,
    ]
  })
  const used = lines.flatMap(([, line]) => line ?? [])
  return `${lines.map(([line]) => line).join('\n')}\n\n${used.join('\n')}`
}

/** What is declared can be exported there only as a whole. */
function exportedAtEnd(text: string, how: string): string {
  const names = [...text.matchAll(/^export const (\w+)/gm)].map(([, name]) => name as string)
  const plain = text.replaceAll(/^export (?=const |interface )/gm, '')
  return `${plain}\n${how} { ${names.join(', ')} }\n`
}

/** Where Prisma generates its client: since version 7 that has to be said in its schema. */
function prismaClient(project: Project, file: string): string {
  const schema: PrismaSchema | undefined = readPrismaSchema(project)
  if (schema?.output === undefined) return '@prisma/client'
  // The older generator writes a package, the newer one sources.
  const target = resolve(schema.output, schema.isSource ? 'client' : 'index')
  const from = dirname(resolve(project.folder, file))
  const path = relative(from, target).replaceAll('\\', '/')
  const ending = schema.isSource ? importEnding(project) : '.js'
  return `${path.startsWith('.') ? path : `./${path}`}${ending}`
}

/** How the project's TypeScript wants relative imports to end. */
function importEnding({ compiler }: Project): string {
  // Without options it is Node that runs the file as it is.
  if (compiler === undefined) return '.ts'
  const { allowImportingTsExtensions, rewriteRelativeImportExtensions } = compiler
  if (allowImportingTsExtensions === true || rewriteRelativeImportExtensions === true) return '.ts'
  const kinds = [compiler.module, compiler.moduleResolution]
  return kinds.some((kind) => /^node(?:16|18|20|next)$/i.test(kind ?? '')) ? '.js' : ''
}
