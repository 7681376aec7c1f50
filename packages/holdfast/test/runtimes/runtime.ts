/** Runtimes that are not the one of this test run: each is installed once, by npm, beside the servers of the tests. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { serversFolder } from '@holdfast/testkit'

const execute = promisify(execFile)

/** How a program is run: `[...start, 'main.mjs']`. */
export interface Runtime {
  /** As the program itself says: `bun 1.4.4`. */
  readonly says: string
  readonly command: string
  readonly args: readonly string[]
}

const binaries = {
  node: { package: `node-${process.platform}-${process.arch}`, path: 'bin/node', args: [] },
  bun: { package: 'bun', path: 'bin/bun.exe', args: [] },
  deno: {
    package: 'deno',
    path: 'deno',
    // The project's own node_modules, and everything allowed as in the other runtimes.
    args: ['run', '--allow-all', '--node-modules-dir=manual', '--no-lock'],
  },
} as const

/** The one that runs this test. */
export const current: Runtime = {
  says: `node ${process.versions.node}`,
  command: process.execPath,
  args: [],
}

/** Installs it if it is not there yet. Needs the registry the first time. */
export async function runtime(name: keyof typeof binaries, version: string): Promise<Runtime> {
  const { package: packed, path, args } = binaries[name]
  const folder = join(dirname(serversFolder()), 'runtimes', `${packed}-${version}`)
  if (!existsSync(folder)) await install(`${packed}@${version}`, folder)
  const command = join(folder, 'node_modules', packed, path)
  return { says: `${name} ${version}`, command, args }
}

/** Whoever is first is right: others may install the same at the same moment. */
async function install(what: string, folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  const making = await mkdtemp(`${folder}-`)
  try {
    await writeFile(join(making, 'package.json'), '{ "private": true }')
    await execute('npm', ['install', '--no-audit', '--no-fund', what], { cwd: making })
    await rename(making, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(making, { recursive: true, force: true })
  }
}
