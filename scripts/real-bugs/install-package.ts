import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The driver that all of them run on; they are older than it, and it is what npm would give them. */
const driver = 'pg@8.23.1'

/**
 * Installs one published version, and what it needs beside it, into a folder of its own below `root`,
 * as a user would, and gives a function that loads what is in it. Install scripts do not run.
 */
export async function installPackage(
  root: string,
  wanted: string,
  beside: readonly string[] = [],
): Promise<NodeJS.Require> {
  const folder = join(root, wanted.replace('@', '-'))
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
  const options = ['--save-exact', '--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', ...options, wanted, ...beside, driver], { cwd: folder })
  return createRequire(join(folder, 'package.json'))
}
