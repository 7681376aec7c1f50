import { readdir, readFile } from 'node:fs/promises'
import { createDatabase } from '@holdfast/testkit'
import { inject } from 'vitest'
import { installedProject, type PackedProject, packedProject } from '../support/packed-project.ts'
import type { Runtime } from './runtime.ts'

const programs = new URL('./programs/', import.meta.url)

/** A project with the packed library, the clients, and the programs that runtimes are tried with. */
export async function projectWithPrograms(): Promise<PackedProject> {
  return await withPrograms(await packedProject(['pg', 'postgres', 'kysely', 'drizzle-orm']))
}

/** The same with clients from the registry. */
export async function projectFromRegistry(names: readonly string[]): Promise<PackedProject> {
  return await withPrograms(await installedProject(names))
}

async function withPrograms(project: PackedProject): Promise<PackedProject> {
  for (const name of await readdir(programs)) {
    await project.write({ [name]: await readFile(new URL(name, programs), 'utf8') })
  }
  return project
}

function emptyDatabase(): Promise<string> {
  return createDatabase(inject('postgresUrl'), 'runtime', inject('emptyDatabase'))
}

/** Runs a program on an empty database; its last line is what it saw. */
export async function seenBy(
  project: PackedProject,
  { command, args }: Runtime,
  program: string,
  env: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const all = { ...env, DATABASE_URL: await emptyDatabase() }
  const output = await project.run(command, [...args, program], all)
  return JSON.parse(output.trim().split('\n').at(-1) ?? '')
}
