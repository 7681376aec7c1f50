import { fileURLToPath } from 'node:url'
import * as project from '../../../holdfast/test/support/packed-project.ts'

/** The folder of our packages. */
export const packages: string = fileURLToPath(new URL('../../../', import.meta.url))

/** Packs what `npm test` has just built. */
export function pack(folder: string, into: string): Promise<project.Tarball> {
  return project.pack(`packages/${folder}`, into)
}
