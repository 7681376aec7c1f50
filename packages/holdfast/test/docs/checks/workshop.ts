import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { type Block, root } from './pages.ts'
import { type Snippet, snippetsOf } from './snippets.ts'

/** A folder of the repository, ignored by git, where blocks become files. */
export interface Workshop extends Disposable {
  readonly snippets: readonly Snippet[]
  fileOf(snippet: Snippet): string
  /** What `tsc` has to say about them, at their place in the page. */
  typeErrors(): Promise<string[]>
}

export function openWorkshop(blocks: readonly Block[]): Workshop {
  const generated = join(root, 'generated')
  mkdirSync(generated, { recursive: true })
  const folder = mkdtempSync(join(generated, 'docs-'))
  const snippets = snippetsOf(blocks, folder)
  const names = new Map(snippets.map((snippet) => [snippet, fileName(snippet)]))
  const config = {
    extends: '../../tsconfig.json',
    // Most users write process.env.NAME; our own taste is no reason to make them stumble.
    compilerOptions: { noPropertyAccessFromIndexSignature: false },
    include: ['*.ts'],
    exclude: [],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  for (const [{ source }, name] of names) writeFileSync(join(folder, name), source)
  writeClient(folder)
  return {
    snippets,
    fileOf: (snippet) => join(folder, names.get(snippet) as string),
    async typeErrors() {
      const byFile = new Map([...names].map(([snippet, name]) => [name, snippet]))
      return (await typeCheck(folder)).split('\n').flatMap((line) => located(line, byFile))
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}

/** The client of examples/upload-quota, where that of a project would be. */
function writeClient(folder: string): void {
  mkdirSync(join(folder, 'generated/prisma'), { recursive: true })
  const client = join(root, 'examples/upload-quota/prisma/generated/client.ts')
  const from = relative(join(folder, 'generated/prisma'), client).replaceAll('\\', '/')
  writeFileSync(join(folder, 'generated/prisma/client.ts'), `export * from '${from}'\n`)
}

function fileName({ block }: Snippet): string {
  return `${block.page.replaceAll(/[^\w-]/g, '-')}-${block.line}.ts`
}

/** What `tsc` prints about the project in this folder; nothing if all is well. */
export async function typeCheck(folder: string): Promise<string> {
  const program = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  try {
    await promisify(execFile)(process.execPath, [program, '-p', folder, '--pretty', 'false'], {
      cwd: folder,
    })
    return ''
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string }
    if (stdout === undefined || stdout === '') throw error
    return stdout
  }
}

/** `readme-12.ts(3,7): error …` becomes `README.md:14 error …`; other lines belong to one above. */
function located(line: string, byFile: ReadonlyMap<string, Snippet>): string[] {
  const [, file = '', row, message] = /^(\S+?)\((\d+),\d+\): (.*)$/.exec(line) ?? []
  if (message === undefined) return []
  const block = byFile.get(file)?.block
  if (block === undefined) return [`${file}:${row} ${message}`]
  return [`${block.page}:${block.line + Number(row) - 2} ${message}`]
}
