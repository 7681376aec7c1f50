/**
 * Makes the files of the browser side out of src/ui, and writes them as one module that the server
 * imports: what is served is a list that was fixed when the package was built, never a path on a disk.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const folder = fileURLToPath(new URL('..', import.meta.url))
const target = join(folder, 'src/generated/ui-files.ts')

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
}

/** Builds the user interface; returns how many bytes each file has. */
export async function buildUi(): Promise<ReadonlyMap<string, number>> {
  const result = await build({
    configFile: false,
    root: join(folder, 'src/ui'),
    base: './',
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      write: false,
      target: 'es2023',
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      modulePreload: { polyfill: false },
      // Only files of our own are allowed by the policy that the pages are served with.
      assetsInlineLimit: 0,
      rolldownOptions: {
        output: {
          entryFileNames: 'assets/app-[hash].js',
          assetFileNames: 'assets/[name]-[hash][extname]',
          postBanner: await notice(),
        },
      },
    },
  })
  if (Array.isArray(result) || !('output' in result)) throw new Error('vite gave no single build')
  const files = result.output.map((file) => {
    const body = file.type === 'chunk' ? file.code : text(file.source)
    return {
      name: file.fileName,
      contentType: contentType(file.fileName),
      hash: createHash('sha256').update(body).digest('hex'),
      immutable: file.fileName.startsWith('assets/'),
      body,
    }
  })
  await write(files)
  return new Map(files.map(({ name, body }) => [name, Buffer.byteLength(body)]))
}

async function write(files: readonly object[]): Promise<void> {
  const module = [
    '// Made by scripts/build-ui.ts.',
    '',
    '/** One file of the browser side. */',
    'export interface UiFile {',
    '  readonly name: string',
    '  readonly contentType: string',
    '  /** SHA-256 of the body, in hexadecimal. */',
    '  readonly hash: string',
    '  /** Its name changes with its content. */',
    '  readonly immutable: boolean',
    '  readonly body: string',
    '}',
    '',
    `export const uiFiles: readonly UiFile[] = ${JSON.stringify(files, null, 2)}`,
    '',
  ].join('\n')
  if ((await readFile(target, 'utf8').catch(() => '')) === module) return
  await mkdir(dirname(target), { recursive: true })
  // In one step, since somebody may import it meanwhile.
  const made = `${target}.${process.pid}`
  await writeFile(made, module)
  await rename(made, target)
}

/** What is bundled is passed on under its licence, so its notice goes with it. */
async function notice(): Promise<string> {
  const manifest = createRequire(import.meta.url).resolve('preact/package.json')
  const licence = await readFile(join(dirname(manifest), 'LICENSE'), 'utf8')
  return `/*! Holdfast console. Contains Preact:\n${licence.trim()}\n*/`
}

function text(source: string | Uint8Array): string {
  return typeof source === 'string' ? source : Buffer.from(source).toString('utf8')
}

function contentType(name: string): string {
  const type = types[name.slice(name.lastIndexOf('.') + 1)]
  if (type === undefined) throw new Error(`no content type for ${name}`)
  return type
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, bytes] of await buildUi()) process.stdout.write(`${bytes}\t${name}\n`)
}
