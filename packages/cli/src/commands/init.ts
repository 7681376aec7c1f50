import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import {
  type Call,
  type Command,
  done,
  Failed,
  Misuse,
  notFound,
  unconfirmed,
  yesFlag,
} from '../command.ts'
import { type Client, clients } from '../init/clients.ts'
import { holdfastFile } from '../init/holdfast-file.ts'

export const init: Command = {
  name: 'init',
  about: 'Write holdfast.ts for the client that this project uses',
  needsDatabase: false,
  flags: {
    client: {
      type: 'string',
      value: '<name>',
      about: `Which client; else found in package.json: ${clients.map(({ name }) => name).join(', ')}`,
    },
    file: {
      type: 'string',
      value: '<path>',
      about: 'Where to write it; else src/holdfast.ts if there is a src, else holdfast.ts',
    },
    yes: yesFlag,
  },
  async run(call) {
    const { folder } = call.around
    const installed = packagesOf(folder)
    const client = clientFor(call, installed)
    const file = fileFor(call)
    const place = resolve(folder, file)
    if (existsSync(place)) throw exists(file)
    const content = holdfastFile(client, folder, file)
    const next = nextSteps(client, installed)
    const isWritten = call.flags['yes'] === true
    if (isWritten) write(place, file, content)
    const words = isWritten
      ? `Wrote ${file}, for ${client.name}.`
      : `Would write ${file}, for ${client.name}:\n\n${content}\nNothing was written: add --yes.`
    const steps = isWritten ? `\nNext:\n${next.map((each) => `  ${each}\n`).join('')}` : ''
    call.print({ client: client.name, file, content, done: isWritten, next }, `${words}\n${steps}`)
    return isWritten ? done : unconfirmed
  },
}

/** Names of what package.json asks for. @throws Failed */
function packagesOf(folder: string): ReadonlySet<string> {
  const file = join(folder, 'package.json')
  let manifest: Readonly<Record<string, unknown>>
  try {
    manifest = JSON.parse(readFileSync(file, 'utf8')) as typeof manifest
  } catch {
    throw notFound(
      'There is no package.json here that can be read.',
      'Run it in the folder of your project, or run `npm init` first.',
    )
  }
  const kinds = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']
  return new Set(kinds.flatMap((kind) => Object.keys((manifest[kind] ?? {}) as object)))
}

function clientFor({ flags }: Call, installed: ReadonlySet<string>): Client {
  const wanted = flags['client']
  const names = clients.map(({ name }) => name).join(', ')
  const found =
    typeof wanted === 'string'
      ? clients.find(({ name }) => name === wanted)
      : clients.find((each) =>
          [each.package, ...(each.needs ?? [])].every((one) => installed.has(one)),
        )
  if (found !== undefined) return found
  if (typeof wanted === 'string') throw new Misuse(`--client is one of: ${names}.`)
  throw notFound(
    'package.json names no client for PostgreSQL that is known here.',
    `Install one, or name it with --client: ${names}. Prisma needs @prisma/adapter-pg as well, Drizzle and Kysely need pg.`,
  )
}

function fileFor({ flags, around }: Call): string {
  const { file } = flags
  if (typeof file !== 'string') {
    return existsSync(join(around.folder, 'src')) ? 'src/holdfast.ts' : 'holdfast.ts'
  }
  if (!/\.m?ts$/.test(file))
    throw new Misuse('--file is the name of a TypeScript file: .ts or .mts.')
  return file
}

function exists(file: string): Failed {
  return new Failed({
    code: 'FILE_EXISTS',
    message: `${file} is there already, and was not changed.`,
    next: 'Name another with --file, or remove it.',
  })
}

/** Not over a file that somebody has just put there. */
function write(place: string, file: string, content: string): void {
  mkdirSync(dirname(place), { recursive: true })
  try {
    writeFileSync(place, content, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw exists(file)
    throw error
  }
}

function nextSteps(client: Client, installed: ReadonlySet<string>): string[] {
  const wanted = ['holdfast', client.package, ...(client.needs ?? [])]
  const missing = wanted.filter((name) => !installed.has(name))
  const types =
    client.imports.some((line) => line.endsWith("from 'pg'")) && !installed.has('@types/pg')
  return [
    ...(missing.length === 0 ? [] : [`npm install ${missing.join(' ')}`]),
    ...(types ? ['npm install --save-dev @types/pg'] : []),
    'npx holdfast migrate   # installs the schema; hf.guard, hf.locks and hf.rows work without it',
    'npx holdfast doctor    # looks whether the server and the schema are as they should be',
  ]
}
