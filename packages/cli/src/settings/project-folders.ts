import { dirname, join } from 'node:path'
import { isOwn } from './is-own.ts'

/**
 * The folders whose files are the project's, the nearest first: up to the repository, or else to the nearest package;
 * without either, this folder alone.
 */
export function projectFolders(folder: string): string[] {
  const upwards = [folder]
  for (let at = folder; dirname(at) !== at; at = dirname(at)) upwards.push(dirname(at))
  const root = ['.git', 'package.json']
    .map((mark) => upwards.findIndex((at) => isOwn(join(at, mark))))
    .find((at) => at !== -1)
  return upwards.slice(0, (root ?? 0) + 1)
}
