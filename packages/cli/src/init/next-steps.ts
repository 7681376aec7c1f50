import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Call } from '../command.ts'
import { readEnvFile } from '../settings/env-file.ts'
import type { Client } from './clients.ts'
import { isTyped } from './module-style.ts'
import { packageTool } from './package-tool.ts'
import { readPrismaSchema } from './prisma-schema.ts'
import type { Project } from './project.ts'

/** What has to be done before the file that was written can be used. */
export function nextSteps(client: Client, project: Project, file: string, call: Call): string[] {
  const { installed } = project
  const wanted = ['holdfast', client.package, ...(client.needs ?? []), ...(client.also ?? [])]
  const missing = wanted.filter((name) => !installed.has(name))
  // From elsewhere the commands find it by themselves.
  const { schema } = call.flags
  const named = typeof schema === 'string' ? ` --schema ${shellWord(schema)}` : ''
  // The commands below are those of @holdfast/cli, and `npx holdfast` does not find it by itself.
  const tools = ['@holdfast/cli', ...typesFor(client, project, file)]
  const forWork = tools.filter((name) => !installed.has(name))
  const { install, installDev, run } = packageTool(project.folder)
  return [
    ...(missing.length === 0 ? [] : [`${install} ${missing.join(' ')}`]),
    ...(client.name === 'prisma' ? prismaSteps(project, file) : []),
    ...(forWork.length === 0 ? [] : [`${installDev} ${forWork.join(' ')}`]),
    ...(databaseIn(project, call) === undefined ? [askForDatabase] : []),
    `${run} holdfast migrate${named}   # installs the schema; hf.guard, hf.locks and hf.rows work without it`,
    `${run} holdfast doctor${named}    # looks whether the server and the schema are as they should be`,
    ...startStep(project, call),
  ]
}

/** Prisma's own client has to be generated before anybody can import it. */
function prismaSteps(project: Project, file: string): string[] {
  const schema = readPrismaSchema(project)
  const { installDev, run } = packageTool(project.folder)
  const { output, isSource } = schema ?? {}
  const isMade =
    output !== undefined && existsSync(join(output, isSource === true ? 'client.ts' : 'index.js'))
  return [
    ...(project.installed.has('prisma') ? [] : [`${installDev} prisma`]),
    ...(schema === undefined
      ? [
          `${run} prisma init        # writes prisma/schema.prisma, which says where the client goes; then run holdfast init again`,
        ]
      : []),
    ...(isMade ? [] : [`${run} prisma generate    # writes the client that ${file} imports`]),
  ]
}

/** Those of pg bring those of Node. */
function typesFor(client: Client, { compiler }: Project, file: string): string[] {
  if (!isTyped(file)) return []
  if (client.imports.some(({ from }) => from === 'pg')) return ['@types/pg']
  return compiler === undefined ? [] : ['@types/node']
}

function shellWord(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
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
