import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolders } from '../settings/project-folders.ts'
import { readText } from '../settings/read-text.ts'
import type { Client } from './clients.ts'
import type { Project } from './project.ts'
import { Failed } from '../failure.ts'

type Version = readonly [major: number, minor: number]

/** What docs/drivers.md says of versions, by package. `least` is the oldest that is tested, `most` the newest major. */
interface Known {
  readonly least: Version
  readonly most: number
  /** Below this major it is known not to work. */
  readonly works?: number
}

const versions: Readonly<Record<string, Known>> = {
  pg: { least: [8, 11], most: 8 },
  postgres: { least: [3, 4], most: 3 },
  '@prisma/client': { least: [7, 10], most: 7, works: 7 },
  '@prisma/adapter-pg': { least: [7, 10], most: 7, works: 7 },
  'drizzle-orm': { least: [0, 44], most: 1 },
  kysely: { least: [0, 28], most: 0 },
  knex: { least: [2, 5], most: 3 },
  '@mikro-orm/postgresql': { least: [7, 2], most: 7, works: 7 },
  sequelize: { least: [6, 37], most: 6 },
  typeorm: { least: [0, 3], most: 1 },
}

/** The adapter takes a pool of its own pg only; one of another copy it takes for settings. */
const adapterPg: Version = [8, 16]

/** What is installed, or else asked for; nothing for `*`, `latest` and the like. */
function versionOf(project: Project, name: string): Version | undefined {
  const file = projectFolders(project.folder)
    .map((at) => join(at, 'node_modules', name, 'package.json'))
    .find((each) => existsSync(each))
  const text = file === undefined ? project.ranges[name] : installedVersion(file)
  const [, major, minor = '0'] = /^[^\d:]*(\d+)(?:\.(\d+))?/.exec(text ?? '') ?? []
  return major === undefined ? undefined : [Number(major), Number(minor)]
}

function installedVersion(file: string): string | undefined {
  try {
    return (JSON.parse(readText(file)) as { readonly version?: string }).version
  } catch {
    return undefined
  }
}

/** @throws Failed */
export function assertWorks(client: Client, project: Project): void {
  for (const name of packagesOf(client)) {
    const [major = Infinity, minor] = versionOf(project, name) ?? []
    const { works } = versions[name] ?? {}
    if (works === undefined || major >= works) continue
    throw new Failed({
      code: 'CLIENT_UNSUPPORTED',
      message: `${name} ${major}.${minor} is not supported by Holdfast. Nothing was written.`,
      next: `Update it to ${works}, or name another client: --client pg.`,
    })
  }
}

/** Of versions that nobody has tried. */
export function versionNotes(client: Client, project: Project): string[] {
  const notes = packagesOf(client).flatMap((name) => {
    const version = versionOf(project, name)
    const known = versions[name]
    if (version === undefined || known === undefined) return []
    const { least, most } = known
    if (!isBefore(version, least) && version[0] <= most) return []
    return [
      `Holdfast was not tested with ${name} ${version.join('.')}: it is tested with ${least.join('.')} to ${most}.`,
    ]
  })
  const pg = client.name === 'prisma' ? versionOf(project, 'pg') : undefined
  return pg !== undefined && (isBefore(pg, adapterPg) || pg[0] > adapterPg[0])
    ? [
        ...notes,
        `pg must be the copy that @prisma/adapter-pg uses, or it ignores the pool: ask for pg ^${adapterPg.join('.')}, and see with npm ls pg that there is one.`,
      ]
    : notes
}

function packagesOf({ package: name, needs = [] }: Client): readonly string[] {
  return [name, ...needs]
}

function isBefore([major, minor]: Version, [other, least]: Version): boolean {
  return major < other || (major === other && minor < least)
}
