import { dirname, relative, resolve } from 'node:path'
import type { Client, Import } from './clients.ts'
import { type PrismaSchema, readPrismaSchema } from './prisma-schema.ts'
import type { Project } from './project.ts'

/** How modules of a file are loaded: as ES modules, by TypeScript that becomes CommonJS, or by require(). */
type Style = 'esm' | 'compiled' | 'require'

/** The text of the file for a client; `file` is where it goes, which its imports depend on. */
export function holdfastFile(client: Client, project: Project, file: string): string {
  const style = styleOf(project, file)
  const [name = ''] = client.from.split('(')
  const imports = [
    ...client.imports.map((each) =>
      each.from === '<generated>' ? { ...each, from: prismaClient(project, file) } : each,
    ),
    { from: 'holdfast', names: ['createHoldfast'] },
    { from: `holdfast/drivers/${client.driver}`, names: [name] },
  ].toSorted((a, b) => (a.from < b.from ? -1 : 1))
  const body = client.body({ typed: /\.[cm]?ts$/.test(file), awaits: style === 'esm' })
  const text = `${imports.map((each) => importText(each, style, project)).join('\n')}

const connectionString = process.env['DATABASE_URL']
if (connectionString === undefined) throw new Error('DATABASE_URL is not set')

// If your project makes this client elsewhere, import it from there: one pool is enough.
${body}

/** Locks, quotas, leases and the rest, in the transactions of this client. */
export const hf = createHoldfast(${client.from})
`
  return style === 'require' ? exportedAtEnd(text) : text
}

function styleOf({ isModule, compiler }: Project, file: string): Style {
  if (/\.m[jt]s$/.test(file)) return 'esm'
  const isTyped = /\.c?ts$/.test(file)
  if (/\.c[jt]s$/.test(file)) return isTyped ? 'compiled' : 'require'
  if (isModule) return 'esm'
  if (!isTyped) return 'require'
  // Without options it is Node that runs the file, and sees by its imports what it is. A bundler keeps them as well.
  const { module = compiler === undefined ? 'esnext' : 'commonjs' } = compiler ?? {}
  return /^(?:commonjs|node\d+|nodenext|umd|amd|system)$/i.test(module) ? 'compiled' : 'esm'
}

function importText({ from, names, whole, is }: Import, style: Style, project: Project): string {
  const what = names === undefined ? whole : `{ ${names.join(', ')} }`
  if (style === 'require') return `const ${what} = require('${from}')`
  if (style === 'esm' || names !== undefined || is === 'default') {
    return `import ${what} from '${from}'`
  }
  // An object is the same whatever the settings are; a function needs other words if TypeScript makes no default of it.
  if (is === 'object') return `import * as ${what} from '${from}'`
  const { module = '', esModuleInterop = !/^commonjs$/i.test(module) } = project.compiler ?? {}
  return esModuleInterop ? `import ${what} from '${from}'` : `import ${what} = require('${from}')`
}

function exportedAtEnd(text: string): string {
  const names = [...text.matchAll(/^export const (\w+)/gm)].map(([, name]) => name as string)
  const plain = text.replaceAll(/^export (?=const )/gm, '')
  return `${plain}\nmodule.exports = { ${names.join(', ')} }\n`
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
