import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { isOwn } from './is-own.ts'
import { projectFolders } from './project-folders.ts'

/** What the nearest `.env` of the project says. */
export interface EnvFile {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Where it was read from. */
  readonly file?: string
  /** Why it was not read, if there is one and it was not. */
  readonly unread?: string
}

/** It says which database to talk to, so somebody else's is not read. */
export function readEnvFile(folder: string): EnvFile {
  const file = projectFolders(resolve(folder))
    .map((at) => join(at, '.env'))
    .find((each) => existsSync(each))
  if (file === undefined) return { variables: {} }
  if (!isOwn(file)) return { variables: {}, unread: `${file} belongs to another user` }
  try {
    return { file, variables: parseEnv(readFileSync(file, 'utf8')) }
  } catch (error) {
    return {
      variables: {},
      unread: `${file} cannot be read (${(error as { code?: string }).code})`,
    }
  }
}
