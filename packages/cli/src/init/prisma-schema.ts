import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { readText } from '../settings/read-text.ts'
import type { Project } from './project.ts'

/** What Prisma's schema says about the client that it generates. */
export interface PrismaSchema {
  /** The file that says so, from the project's folder. */
  readonly file: string
  /** Where the client goes, if it is not its package. */
  readonly output: string | undefined
  /** It is generated as sources, and not as a package. */
  readonly isSource: boolean
  /** The database: `postgresql`, `sqlite`, … */
  readonly provider: string | undefined
}

const configs = ['prisma.config', '.config/prisma'].flatMap((name) =>
  ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'].map((ending) => `${name}.${ending}`),
)

/** The schema of the project: one file or a folder of them, wherever it says. */
export function readPrismaSchema(project: Project): PrismaSchema | undefined {
  const { folder, prismaSchema } = project
  const places = [
    ...configs.map((name) => configuredIn(folder, name)),
    prismaSchema,
    'prisma/schema.prisma',
    'prisma/schema',
    'schema.prisma',
  ]
  const place = places
    .filter((each) => each !== undefined)
    .map((each) => resolve(folder, each))
    .find((each) => existsSync(each))
  if (place === undefined) return undefined
  const files = filesIn(place)
  const texts = files.map((file) => ({ file, text: readText(file) }))
  const generators = texts.flatMap(({ file, text }) =>
    blocksIn(text, 'generator').map((block) => ({ file, block })),
  )
  const client = generators.find(({ block }) =>
    /^prisma-client(?:-js)?$/.test(valueIn(block, 'provider') ?? ''),
  )
  const file = client?.file ?? (files[0] as string)
  const output = client === undefined ? undefined : valueIn(client.block, 'output')
  const [datasource] = texts.flatMap(({ text }) => blocksIn(text, 'datasource'))
  return {
    file: relative(folder, file).replaceAll('\\', '/'),
    // It is meant from the file that says so.
    output: output === undefined ? undefined : resolve(dirname(file), output),
    isSource: client !== undefined && valueIn(client.block, 'provider') === 'prisma-client',
    provider: datasource === undefined ? undefined : valueIn(datasource, 'provider'),
  }
}

/** A path in a configuration that is a program: written out, or joined from texts. */
function configuredIn(folder: string, name: string): string | undefined {
  const file = join(folder, name)
  if (!existsSync(file)) return undefined
  const text = readText(file).replaceAll(/^\s*\/\/.*$/gm, '')
  const [, whole = ''] =
    /\bschema\s*:\s*((?:[\w.]+\()?\s*(?:['"`][^'"`\n]*['"`]\s*,?\s*)+)/.exec(text) ?? []
  const parts = [...whole.matchAll(/['"`]([^'"`\n]*)['"`]/g)].map(([, part]) => part as string)
  return parts.length === 0 ? undefined : join(dirname(name), ...parts)
}

function filesIn(place: string): string[] {
  if (!statSync(place).isDirectory()) return [place]
  return readdirSync(place, { recursive: true, encoding: 'utf8' })
    .filter((name) => extname(name) === '.prisma')
    .toSorted()
    .map((name) => join(place, name))
}

function blocksIn(text: string, kind: 'generator' | 'datasource'): string[] {
  const blocks = text.matchAll(new RegExp(`^\\s*${kind}\\s+\\w+\\s*\\{([^}]*)\\}`, 'gm'))
  return [...blocks].map(([, block]) => block as string)
}

function valueIn(block: string, name: string): string | undefined {
  return new RegExp(`^\\s*${name}\\s*=\\s*"([^"]+)"`, 'm').exec(block)?.[1]
}
