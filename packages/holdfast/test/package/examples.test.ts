/**
 * The examples, as somebody has them who copied a folder out of the repository: what their README says to run, with what is
 * packed. The one of NestJS is compiled and run in this way by its own test.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { createDatabase, sample } from '@holdfast/testkit'
import ts from 'typescript-5'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { blocksOf, root } from '../docs/checks/pages.ts'
import { openShelf, type Run, type Shelf } from '../support/packed-shelf.ts'

const examples = join(root, 'examples')
const names = readdirSync(examples).filter((name) =>
  existsSync(join(examples, name, 'package.json')),
)
const run = names.filter((name) => name !== 'nestjs')
/** Of the repository, or made anew by whoever has a copy. */
const leftBehind = /\/(?:test|generated|node_modules)(?:\/|$)/

let shelf: Shelf

beforeAll(async () => {
  shelf = await openShelf(['holdfast', 'race'])
})

afterAll(async () => {
  await shelf[Symbol.asyncDispose]()
})

/** The lines under "A copy of this folder". */
function linesOf(name: string): string {
  const path = `examples/${name}/README.md`
  const text = readFileSync(join(root, path), 'utf8')
  const block = blocksOf({ path, text }).find(({ code }) => /^npm install$/m.test(code))
  if (block === undefined) throw new Error(`${path} does not say how a copy is run`)
  return block.code
}

async function runCopy(name: string, lines = linesOf(name)): Promise<Run> {
  const project = await shelf.project(name)
  const from = join(examples, name)
  await cp(from, project.folder, {
    recursive: true,
    filter: (path) => !leftBehind.test(path.slice(from.length)),
  })
  const url = await createDatabase(inject('postgresUrl'), 'copy', inject('emptyDatabase'))
  return await project.run(lines.replaceAll('postgres://localhost/test', url), {
    // Prisma generates without its engine, and would fetch it all the same.
    PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
    CHECKPOINT_DISABLE: '1',
  })
}

interface Import {
  readonly place: string
  readonly specifier: string
}

/** What the files of an example import, tests of this repository aside. */
function importsOf(name: string): Import[] {
  const folder = join(examples, name)
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !leftBehind.test(`/${path}`))
    .flatMap((path) =>
      ts
        .preProcessFile(readFileSync(join(folder, path), 'utf8'), true, true)
        .importedFiles.map(({ fileName }) => ({ place: path, specifier: fileName })),
    )
}

/** Imports that would lead nowhere in a copy. */
function lost(name: string, imports: readonly Import[]): string[] {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(
    readFileSync(join(examples, name, 'package.json'), 'utf8'),
  ) as Record<'dependencies' | 'devDependencies', Record<string, string> | undefined>
  const installed = new Set(Object.keys({ ...dependencies, ...devDependencies }))
  const isThere = ({ place, specifier }: Import): boolean => {
    if (specifier.startsWith('.')) {
      return join('/copy', place, '..', specifier).startsWith('/copy/')
    }
    const [scope = '', rest = ''] = specifier.split('/')
    return isBuiltin(specifier) || installed.has(scope.startsWith('@') ? `${scope}/${rest}` : scope)
  }
  return [
    ...[...installed].filter((each) => each.startsWith('@holdfast/') && !isPublic(each)),
    ...imports.filter((each) => !isThere(each)).map((each) => `${each.place}: ${each.specifier}`),
  ]
}

const isPublic = (name: string): boolean =>
  existsSync(join(root, 'packages', name.replace('@holdfast/', '')))

describe('the examples, copied out', () => {
  test.each(names)('%s imports what its package.json names, and no file outside', (name) => {
    const imports = importsOf(name)
    expect(imports.length).toBeGreaterThan(0)
    expect(lost(name, imports)).toEqual([])
  })

  // A brief run has two of them: on Prisma, and without a server.
  test.each(sample(run, 6, 1))(
    '%s runs with what is packed, as its README says',
    { timeout: 180_000 },
    async (name) => {
      const { passes, output } = await runCopy(name)
      expect(passes ? 'passes' : output).toBe('passes')
    },
  )
})

describe('the checks go red', () => {
  test('for an import of the repository', () => {
    const place = 'demo/demo.ts'
    const specifiers = ['@holdfast/testkit', '../../../testkit/src/index.ts', '../src/a.ts', 'pg']
    const imports = specifiers.map((specifier) => ({ place, specifier }))
    expect(lost('outbox', imports)).toEqual([
      `${place}: @holdfast/testkit`,
      `${place}: ../../../testkit/src/index.ts`,
    ])
  })

  test('for a copy that does not install what it needs', async () => {
    const project = await shelf.project('forgetful')
    await cp(join(examples, 'outbox'), project.folder, { recursive: true })
    const { output } = await project.run('npm install pg\nnode src/with-claims.ts', {})
    expect(output).toContain('ERR_MODULE_NOT_FOUND')
  })
})
