import { createDatabase } from '@holdfast/testkit'
import { expect, inject } from 'vitest'
import { packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import type { FirstHour, PackedProject } from '../support/packed-project.ts'

export function emptyDatabase(): Promise<string> {
  return createDatabase(inject('postgresUrl'), 'bundled', inject('emptyDatabase'))
}

/** Runs a program of the project on an empty database; its last line is what it saw. */
export async function onEmptyDatabase(
  project: PackedProject,
  command: string,
  args: readonly string[],
): Promise<FirstHour> {
  const output = await project.run(command, args, { DATABASE_URL: await emptyDatabase() })
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as FirstHour
}

/** Everything went well, and the version is that of the library. */
export const everything = {
  applied: expect.toSatisfy((count: number) => count > 150),
  again: 0,
  most: 1,
  spent: true,
  code: 'LOCK_KEY_INVALID',
  version: readManifest(packageRoot('holdfast')).version,
}
