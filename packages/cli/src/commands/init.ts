import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type Call, type Command, done, Failed, Misuse, unconfirmed, yesFlag } from '../command.ts'
import { readEnvFile } from '../env-file.ts'
import { type Choice, chooseClient, unsupported } from '../init/choose-client.ts'
import { type Client, clients } from '../init/clients.ts'
import { holdfastFile } from '../init/holdfast-file.ts'
import { readPrismaSchema } from '../init/prisma-schema.ts'
import { type Project, readProject } from '../init/project.ts'

export const init: Command = {
  name: 'init',
  about: 'Write a file with hf, for the client that this project uses',
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
      about: 'Where to write it; else holdfast.ts or holdfast.js, in src if there is one',
    },
    yes: yesFlag,
  },
  async run(call) {
    const { flags, around } = call
    const project = readProject(around.folder)
    const wanted = flags['client']
    const choice = chooseClient(project.installed, typeof wanted === 'string' ? wanted : undefined)
    const { client, others } = choice
    if (client.name === 'prisma') assertPostgres(project)
    const file = fileFor(call, project)
    const place = resolve(around.folder, file)
    if (existsSync(place)) throw exists(file)
    const content = holdfastFile(client, project, file)
    const next = nextSteps(client, project, file, call)
    const isWritten = flags['yes'] === true
    if (isWritten) write(place, file, content)
    const words = isWritten
      ? `Wrote ${file}, for ${client.name}.\n${choiceText(choice, `remove ${file} and `)}`
      : `Would write ${file}, for ${client.name}:\n\n${content}\n${choiceText(choice, '')}Nothing was written: add --yes.\n`
    const steps = isWritten ? `\nNext:\n${next.map((each) => `  ${each}\n`).join('')}` : ''
    const result = { client: client.name, others: others.map(({ name }) => name), file, content }
    call.print({ ...result, done: isWritten, next }, `${words}${steps}`)
    return isWritten ? done : unconfirmed
  },
}

/** There is nobody to ask who would see it, so it says what else there is. */
function choiceText({ others }: Choice, first: string): string {
  const [other] = others
  if (other === undefined) return ''
  const names = others.map(({ name }) => name).join(', ')
  return `package.json has ${names} as well: for that, ${first}add --client ${other.name}.\n`
}

/** @throws Failed */
function assertPostgres(project: Project): void {
  const { file, provider = 'postgresql' } = readPrismaSchema(project) ?? {}
  if (/^(?:postgres|postgresql)$/.test(provider)) return
  throw unsupported(`the schema in ${file} is for ${provider}`)
}

function fileFor({ flags, around }: Call, { isTypeScript }: Project): string {
  const { file } = flags
  if (typeof file !== 'string') {
    const name = `holdfast.${isTypeScript ? 'ts' : 'js'}`
    return existsSync(join(around.folder, 'src')) ? `src/${name}` : name
  }
  if (!/\.[cm]?[jt]s$/.test(file))
    throw new Misuse('--file is the name of a file of TypeScript or JavaScript: .ts, .js, .mts, …')
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

function nextSteps(client: Client, project: Project, file: string, call: Call): string[] {
  const { installed } = project
  const wanted = ['holdfast', client.package, ...(client.needs ?? []), ...(client.also ?? [])]
  const missing = wanted.filter((name) => !installed.has(name))
  const usesTypes = file.endsWith('ts') && client.imports.some(({ from }) => from === 'pg')
  return [
    ...(missing.length === 0 ? [] : [`npm install ${missing.join(' ')}`]),
    ...(usesTypes && !installed.has('@types/pg') ? ['npm install --save-dev @types/pg'] : []),
    ...(databaseIn(project, call) === undefined ? [askForDatabase] : []),
    'npx holdfast migrate   # installs the schema; hf.guard, hf.locks and hf.rows work without it',
    'npx holdfast doctor    # looks whether the server and the schema are as they should be',
    ...startStep(project, call),
  ]
}

const askForDatabase =
  'export DATABASE_URL=postgres://user:password@localhost:5432/database   # or in .env'

/** What says which database it is: the environment, or a file. */
function databaseIn({ folder }: Project, { around }: Call): { readonly file?: string } | undefined {
  if ((around.environment['DATABASE_URL'] ?? '') !== '') return {}
  const { variables, file } = readEnvFile(folder)
  const isSet = file !== undefined && (variables['DATABASE_URL'] ?? '') !== ''
  return isSet ? { file } : undefined
}

/** What brings the variables of .env into the program. */
const loaders = ['dotenv', 'dotenv-cli', '@dotenvx/dotenvx', '@nestjs/config', 'next', 'nuxt']

/** Commands of ours read .env by themselves; Node, which runs the file that was written, does not. */
function startStep(project: Project, call: Call): string[] {
  const { file } = databaseIn(project, call) ?? {}
  if (file === undefined || loaders.some((name) => project.installed.has(name))) return []
  const path = relative(project.folder, file).replaceAll('\\', '/')
  return [
    `node --env-file=${path} <your program>   # so that it has DATABASE_URL, unless it reads ${path} itself`,
  ]
}
