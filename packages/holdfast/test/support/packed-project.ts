/** Projects of somebody else: outside the workspace, with our packages as they would be published. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../../../../', import.meta.url))

export interface Tarball {
  readonly path: string
  readonly files: readonly string[]
  /** Of everything in it, unpacked. */
  readonly bytes: number
}

/** Packs what was built last; building here would pull dist/ from under other tests. */
export async function pack(folder: string, into: string): Promise<Tarball> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', into]
  const { stdout } = await execute('npm', args, { cwd: join(root, folder) })
  const [{ filename, files, unpackedSize }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[]; unpackedSize: number },
  ]
  return {
    path: join(into, filename),
    files: files.map(({ path }) => path),
    bytes: unpackedSize,
  }
}

/** Where an installation would have put it. */
export async function unpack(tarball: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  await execute('tar', ['-xzf', tarball, '-C', into, '--strip-components', '1'])
}

export interface PackedProject extends AsyncDisposable {
  readonly folder: string
  write(files: Readonly<Record<string, string>>): Promise<void>
  /** What it wrote to stdout; rejects unless it ends well. */
  run(
    command: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<string>
}

/** In its package.json: a version that must not be taken for ours. */
export const foreignVersion = '99.7.5'

/** An empty project with the library in it, and with packages of the workspace. */
export async function packedProject(others: readonly string[] = []): Promise<PackedProject> {
  const project = await emptyProject()
  const modules = join(project.folder, 'node_modules')
  await unpack((await pack('packages/holdfast', project.folder)).path, join(modules, 'holdfast'))
  for (const name of ['croner', ...others]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name))
  }
  return project
}

/** A project with the library and others, installed by npm. Needs the registry. */
export async function installedProject(
  names: readonly string[],
  manifest: object = {},
): Promise<PackedProject> {
  const project = await emptyProject(manifest)
  const { path } = await pack('packages/holdfast', project.folder)
  await project.run('npm', ['install', '--no-audit', '--no-fund', path, ...names])
  return project
}

async function emptyProject(manifest: object = {}): Promise<PackedProject> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-project-'))
  const write = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
  }
  const own = { name: 'theirs', version: foreignVersion, private: true, ...manifest }
  await write({ 'package.json': JSON.stringify(own) })
  return {
    folder,
    write,
    async run(command, args, env = {}) {
      const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 }
      const { stdout } = await execute(command, args, options).catch((error: Error) => {
        // Compilers say what is wrong where others say what they made.
        error.message += (error as Error & { readonly stdout: string }).stdout
        throw error
      })
      return stdout
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/**
 * What somebody does in the first hour: install the schema, guard something, spend a credit. Prints one line
 * of JSON, see `FirstHour`.
 */
export const firstHour = `
import { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate, plan } from 'holdfast/schema'
import pg from 'pg'

export async function firstHour(url) {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  try {
    const driver = fromPg(pool)
    const { applied } = await migrate(driver)
    const again = await migrate(driver)
    const hf = createHoldfast(driver)
    let inside = 0
    let most = 0
    const enter = () =>
      hf.guard(lockKey('first-hour', 'one'), async (tx) => {
        most = Math.max(most, (inside += 1))
        await tx.query('SELECT pg_sleep(0.02)')
        inside -= 1
      })
    await Promise.all([enter(), enter(), enter()])
    const credits = hf.credits({ name: 'credits' })
    await credits.grant('ann', 100, { operationId: crypto.randomUUID() })
    const spent = await credits.spend('ann', 30, { operationId: crypto.randomUUID() })
    let code
    try {
      lockKey('without a part')
    } catch (error) {
      code = isHoldfastError(error) ? error.code : String(error)
    }
    await hf.close()
    const [, version] = /Holdfast (\\S+)\\./.exec(plan())
    return { applied: applied.length, again: again.applied.length, most, spent: spent.ok, code, version }
  } finally {
    await pool.end()
  }
}
`

/** Runs it, as a program. */
export const firstHourMain = `import { firstHour } from './first-hour.mjs'
firstHour(process.env.DATABASE_URL).then((seen) => console.log(JSON.stringify(seen)))
`

export interface FirstHour {
  readonly applied: number
  readonly again: number
  readonly most: number
  readonly spent: boolean
  readonly code: string
  readonly version: string
}
