/** The example as somebody has it who copied the folder: with packed tarballs, compiled, run as a process. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))

/** How somebody has set it up. */
export interface Variant {
  /** Of which Nest; `installed` is the one of this repository, which needs no registry. */
  readonly nest: '11' | '12' | 'installed'
  readonly modules: 'commonjs' | 'module'
  readonly platform: 'express' | 'fastify'
}

export interface Project {
  /** The compiled program, and the same without its shutdown hooks. */
  readonly main: string
  readonly withoutHooks: string
  readonly folder: string
  remove(): Promise<void>
}

export async function copyOut({ nest, modules, platform }: Variant): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-nestjs-'))
  const example = join(root, 'examples/nestjs')
  for (const name of ['src', 'tsconfig.json'])
    await cp(join(example, name), join(folder, name), { recursive: true })
  await writeManifest(example, folder, nest, modules)
  await writeMains(folder, platform)
  const packed = [await pack('holdfast', folder), await pack('nestjs', folder)]
  if (nest === 'installed') await link(folder, packed)
  else
    await run('npm', ['install', '--no-audit', '--no-fund', ...packed, ...more(nest)], {
      cwd: folder,
    })
  await compile(folder, nest === 'installed' ? 'typescript/bin/tsc' : 'typescript-5/bin/tsc')
  return {
    main: join(folder, 'dist/main.js'),
    withoutHooks: join(folder, 'dist/without-hooks.js'),
    folder,
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

async function compile(folder: string, compiler: string): Promise<void> {
  try {
    await run(process.execPath, [join(root, 'node_modules', compiler)], { cwd: folder })
  } catch (error) {
    throw new Error((error as { stdout: string }).stdout, { cause: error })
  }
}

const more = (nest: string): string[] => [
  `@nestjs/common@${nest}`,
  `@nestjs/core@${nest}`,
  `@nestjs/platform-express@${nest}`,
  `@nestjs/platform-fastify@${nest}`,
]

async function writeManifest(
  example: string,
  folder: string,
  nest: Variant['nest'],
  modules: Variant['modules'],
): Promise<void> {
  const manifest = JSON.parse(await readFile(join(example, 'package.json'), 'utf8')) as {
    type: string
    dependencies: Record<string, string>
  }
  manifest.type = modules
  if (nest !== 'installed')
    for (const name of Object.keys(manifest.dependencies))
      if (name.startsWith('@nestjs/')) manifest.dependencies[name] = nest
  // Ours are installed from tarballs.
  delete manifest.dependencies['holdfast']
  delete manifest.dependencies['@holdfast/nestjs']
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
}

async function writeMains(folder: string, platform: Variant['platform']): Promise<void> {
  const file = join(folder, 'src/main.ts')
  let main = await readFile(file, 'utf8')
  if (platform === 'fastify')
    main = `import { FastifyAdapter } from '@nestjs/platform-fastify'\n${replaced(
      main,
      'create(AppModule)',
      'create(AppModule, new FastifyAdapter())',
    )}`
  await writeFile(file, main)
  const without = replaced(main, '  app.enableShutdownHooks()\n', '')
  await writeFile(join(folder, 'src/without-hooks.ts'), without)
}

/** A control that changed nothing would be none. */
function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the example no longer has ${from}`)
  return text.replace(from, to)
}

async function pack(name: string, folder: string): Promise<string> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const { stdout } = await run('npm', args, { cwd: join(root, 'packages', name) })
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  return join(folder, filename)
}

/** What the lockfile has, beside our own two, unpacked. */
async function link(folder: string, packed: readonly string[]): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '@holdfast'), { recursive: true })
  for (const name of await readdir(join(root, 'node_modules')))
    if (!['holdfast', '@holdfast', '.bin'].includes(name))
      await symlink(join(root, 'node_modules', name), join(modules, name))
  for (const [at, into] of ['holdfast', '@holdfast/nestjs'].entries()) {
    await mkdir(join(modules, into))
    const args = [
      '-xzf',
      packed[at] as string,
      '-C',
      join(modules, into),
      '--strip-components',
      '1',
    ]
    await run('tar', args)
  }
}
