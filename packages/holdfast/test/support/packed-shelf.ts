/**
 * What npm would install, without a registry: our packages as they are packed, and those of the workspace. A project has
 * what its commands install and nothing else, so a name that a page forgets is missed.
 */
import { execFile } from 'node:child_process'
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pack, unpack } from './packed-project.ts'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))
const limitMs = 90_000

export interface Shelf extends AsyncDisposable {
  /** Holds the projects. */
  readonly folder: string
  /** An empty folder of this name. */
  project(name: string): Promise<ShelfProject>
}

export interface ShelfProject {
  readonly folder: string
  /** Runs lines of a shell, one after the other, until one fails. */
  run(lines: string, env: Readonly<Record<string, string>>): Promise<Run>
}

export interface Run {
  readonly passes: boolean
  readonly output: string
}

/** Packs these folders of `packages/`, which must be built. */
export async function openShelf(packages: readonly string[]): Promise<Shelf> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-shelf-'))
  const shelf = join(folder, 'shelf/node_modules')
  await mkdir(join(shelf, '@holdfast'), { recursive: true })
  for (const name of packages) {
    const tarball = await pack(join('packages', name), folder)
    await unpack(tarball.path, join(shelf, await nameOf(join(root, 'packages', name))))
  }
  // What ours depend on is found beside them, and is the same for everybody.
  for (const name of await readdir(join(root, 'node_modules'))) {
    if (name === '.bin' || name === 'holdfast' || name === '@holdfast') continue
    await symlink(join(root, 'node_modules', name), join(shelf, name))
  }
  return {
    folder,
    async project(name) {
      const own = join(folder, name)
      await mkdir(own)
      return { folder: own, run: (lines, env) => runLines(lines, own, shelf, env) }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

async function runLines(
  lines: string,
  folder: string,
  shelf: string,
  env: Readonly<Record<string, string>>,
): Promise<Run> {
  let output = ''
  for (const line of lines.split('\n')) {
    const [command, named] = /^npm install(?: --save-dev)?(?: (.*))?$/.exec(line) ?? []
    if (command === undefined) {
      const ran = await runLine(line, folder, env)
      output += ran.output
      if (!ran.passes) return { passes: false, output }
    } else {
      const names = named?.split(' ') ?? (await dependenciesOf(folder))
      for (const name of names) await install(name, folder, shelf)
    }
  }
  return { passes: true, output }
}

async function runLine(
  line: string,
  folder: string,
  own: Readonly<Record<string, string>>,
): Promise<Run> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const path = [dirname(process.execPath), process.env['PATH']].join(delimiter)
  try {
    const { stdout } = await execute('bash', ['-c', line], {
      cwd: folder,
      env: { ...env, PATH: path, ...own },
      timeout: limitMs,
      killSignal: 'SIGKILL',
    })
    return { passes: true, output: stdout }
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return { passes: false, output: stdout + stderr }
  }
}

/** Puts a package into the project, and its commands. */
async function install(name: string, folder: string, shelf: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  const from = join(shelf, name)
  await access(from)
  await mkdir(dirname(join(modules, name)), { recursive: true })
  await symlink(from, join(modules, name))
  const { bin = {} } = await manifestOf(from)
  const commands = typeof bin === 'string' ? { [name]: bin } : bin
  await mkdir(join(modules, '.bin'), { recursive: true })
  for (const [command, file] of Object.entries(commands)) {
    await chmod(join(from, file), 0o755) // as npm does
    await symlink(join(from, file), join(modules, '.bin', command))
  }
}

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly bin?: string | Readonly<Record<string, string>>
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
}

async function dependenciesOf(folder: string): Promise<string[]> {
  const { dependencies = {}, devDependencies = {} } = await manifestOf(folder)
  return Object.keys({ ...dependencies, ...devDependencies })
}

async function nameOf(folder: string): Promise<string> {
  return (await manifestOf(folder)).name
}
