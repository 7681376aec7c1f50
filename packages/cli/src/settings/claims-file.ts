import type { ClaimsOptions } from 'holdfast/claims'
import type { Call, Flag } from '../command.ts'
import { readText } from './read-text.ts'
import { Misuse } from '../failure.ts'

/** The flag that names a file with claims options. */
export const claimsFlag: Flag = {
  type: 'string',
  value: '<file>',
  about: 'JSON with an array of claims options; else claims of the configuration file',
}

/** What `hf.claims(…)` is called with, one table or several: from the file that was named, or the configuration. */
export async function claimsOf({ flags, config }: Call): Promise<readonly ClaimsOptions[]> {
  const file = flags['claims']
  if (typeof file !== 'string') return config.claims ?? []
  let content: unknown
  try {
    content = JSON.parse(readText(file))
  } catch {
    throw new Misuse(`--claims: ${file} cannot be read as JSON.`)
  }
  const tables = Array.isArray(content) ? (content as unknown[]) : [content]
  const isTable = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && 'table' in value
  if (!tables.every(isTable)) throw new Misuse('--claims: each entry needs at least a table.')
  return tables as readonly ClaimsOptions[]
}
