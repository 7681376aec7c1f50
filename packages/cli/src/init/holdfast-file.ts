import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { Client } from './clients.ts'

/** The text of `holdfast.ts` for a client; `file` is where it goes, which its imports depend on. */
export function holdfastFile(client: Client, folder: string, file: string): string {
  const { driver, from } = client
  const [name = ''] = from.split('(')
  const imports = [
    ...client.imports.map((line) => line.replace('<generated>', prismaClient(folder, file))),
    "import { createHoldfast } from 'holdfast'",
    `import { ${name} } from 'holdfast/drivers/${driver}'`,
  ].toSorted((a, b) => (moduleOf(a) < moduleOf(b) ? -1 : 1))
  return `${imports.join('\n')}

const connectionString = process.env['DATABASE_URL']
if (connectionString === undefined) throw new Error('DATABASE_URL is not set')

// If your project makes this client elsewhere, import it from there: one pool is enough.
${client.body}

/** Locks, quotas, leases and the rest, in the transactions of this client. */
export const hf = createHoldfast(${from})
`
}

function moduleOf(line: string): string {
  return /'([^']+)'$/.exec(line)?.[1] ?? ''
}

/** Where Prisma generates its client: since version 7 that has to be said in its schema. */
function prismaClient(folder: string, file: string): string {
  const schema = ['prisma/schema.prisma', 'schema.prisma']
    .map((each) => join(folder, each))
    .find((each) => existsSync(each))
  const text = schema === undefined ? '' : readFileSync(schema, 'utf8')
  const [, block = ''] = /^generator\s+\w+\s*\{([^}]*)\}/m.exec(text) ?? []
  const [, output] = /^\s*output\s*=\s*"([^"]+)"/m.exec(block) ?? []
  if (schema === undefined || output === undefined) return '@prisma/client'
  // The older generator writes a package, the newer one sources.
  const isSource = /^\s*provider\s*=\s*"prisma-client"/m.test(block)
  const target = resolve(dirname(schema), output, isSource ? 'client' : 'index')
  const path = relative(dirname(resolve(folder, file)), target).replaceAll('\\', '/')
  const ending = isSource ? importEnding(folder) : '.js'
  return `${path.startsWith('.') ? path : `./${path}`}${ending}`
}

/** How the project's TypeScript wants relative imports to end. */
function importEnding(folder: string): string {
  const config = join(folder, 'tsconfig.json')
  // Without one it is Node that runs the file as it is.
  if (!existsSync(config)) return '.ts'
  const text = readFileSync(config, 'utf8')
  if (/"(?:allowImportingTsExtensions|rewriteRelativeImportExtensions)"\s*:\s*true/.test(text)) {
    return '.ts'
  }
  return /"module(?:Resolution)?"\s*:\s*"node(?:16|18|20|next)"/i.test(text) ? '.js' : ''
}
