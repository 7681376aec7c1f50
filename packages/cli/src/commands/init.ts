import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { grants } from 'holdfast/schema'
import { type Call, type Command, yesFlag } from '../command.ts'
import { type Choice, chooseClient, passedOver, unsupported } from '../init/choose-client.ts'
import { clients } from '../init/clients.ts'
import { holdfastFile } from '../init/holdfast-file.ts'
import { isImpossible, moduleNotes, usualEnding } from '../init/module-style.ts'
import { nextSteps } from '../init/next-steps.ts'
import { readPrismaSchema } from '../init/prisma-schema.ts'
import { type Project, readProject } from '../init/project.ts'
import { assertWorks, versionNotes } from '../init/versions.ts'
import { done, Failed, Misuse, unconfirmed } from '../failure.ts'

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
    assertWorks(client, project)
    const file = fileFor(call, project)
    const place = resolve(around.folder, file)
    if (existsSync(place)) throw exists(file)
    if (isImpossible(project, file)) throw impossible(file)
    const schema = schemaFor(call)
    const content = holdfastFile(client, project, { file, schema })
    const passed = wanted === undefined ? passedOver(project.installed) : []
    const notes = [
      ...versionNotes(client, project),
      ...moduleNotes(client, project, file),
      ...passed,
    ]
    const next = nextSteps(client, project, file, call)
    const isWritten = flags['yes'] === true
    if (isWritten) write(place, file, content)
    const noted = notes.map((note) => `${note}\n`).join('')
    const words = isWritten
      ? `Wrote ${file}, for ${client.name}.\n${noted}${choiceText(choice, `remove ${file} and `)}`
      : `Would write ${file}, for ${client.name}:\n\n${content}\n${noted}${choiceText(choice, '')}Nothing was written: add --yes.\n`
    const steps = isWritten ? `\nNext:\n${next.map((each) => `  ${each}\n`).join('')}` : ''
    const result = { client: client.name, others: others.map(({ name }) => name), file, content }
    call.print({ ...result, notes, done: isWritten, next }, `${words}${steps}`)
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

function fileFor({ flags, around }: Call, project: Project): string {
  const { file } = flags
  if (typeof file !== 'string') {
    const name = `holdfast.${usualEnding(project)}`
    return existsSync(join(around.folder, 'src')) ? `src/${name}` : name
  }
  if (!/\.[cm]?[jt]s$/.test(file))
    throw new Misuse('--file is the name of a file of TypeScript or JavaScript: .ts, .js, .mts, …')
  return file
}

/** The one that programs find without being told is not written. @throws OPTION_INVALID */
function schemaFor({ schema }: Call): string | undefined {
  if (schema === undefined || schema === 'holdfast') return undefined
  // The library's own check, which every use of the name would come to later.
  grants({ schema, role: 'app' })
  return schema
}

function impossible(file: string): Failed {
  return new Failed({
    code: 'MODULE_SYNTAX',
    message: `${file} would be CommonJS, which TypeScript cannot write with verbatimModuleSyntax and erasableSyntaxOnly. Nothing was written.`,
    next: `Name an ES module: --file ${file.replace(/\.c?ts$/, '.mts')}.`,
  })
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
