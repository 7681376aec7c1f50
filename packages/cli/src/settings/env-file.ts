import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { isOwn } from './is-own.ts'
import { projectFolders } from './project-folders.ts'
import { readText } from './read-text.ts'

/** What the nearest `.env` of the project says. */
export interface EnvFile {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Where it was read from. */
  readonly file?: string
  /** Why it was not read, if there is one and it was not. */
  readonly unread?: string
  /** Names of those whose value ends at a `#` that may have been a part of it. */
  readonly cut?: readonly string[]
}

/** It says which database to talk to, so somebody else's is not read. */
export function readEnvFile(folder: string): EnvFile {
  const file = projectFolders(resolve(folder))
    .map((at) => join(at, '.env'))
    .find((each) => existsSync(each))
  if (file === undefined) return { variables: {} }
  const unread = (why: string): EnvFile => ({ variables: {}, unread: `${file} ${why}` })
  if (!isOwn(file)) return unread('belongs to another user')
  try {
    const text = readText(file)
    const variables = parseEnv(text)
    const cut = Object.keys(variables).filter((name) => /^\w+$/.test(name) && isCut(text, name))
    return { file, variables, ...(cut.length === 0 ? {} : { cut }) }
  } catch (error) {
    return unread(`cannot be read (${(error as { code?: string }).code})`)
  }
}

/**
 * Without quotes a `#` ends the value, also in the middle of a password. After a space it is a comment, unless there is
 * more of a URL in it.
 */
function isCut(text: string, name: string): boolean {
  const line = new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=[^\\S\\n]*([^\\n]*)$`, 'gm')
  const value = [...text.matchAll(line)].at(-1)?.[1] ?? ''
  return /^[^'"`#][^#]*(?:\S#|#.*@)/.test(value)
}
