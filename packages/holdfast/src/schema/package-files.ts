/**
 * What the package brings along beside its code. The sources read it from the disk, so that a change of `sql/`
 * counts at once; the build puts a module with the contents in the place of this one (`scripts/build-library.ts`),
 * so that what is published reads no file and can be bundled. Only functions here: a module with
 * `import.meta` at its top could not be loaded from a CommonJS bundle.
 */
import { readdirSync, readFileSync } from 'node:fs'

const folders = ['migrations', 'online', 'internal', 'views', 'app', 'operator'] as const

/** The text of each SQL file, by folder and name without the ending, sorted within a folder. */
export function sqlTexts(): Readonly<Record<string, string>> {
  const names = folders.flatMap((folder) =>
    readdirSync(inPackage(`sql/${folder}`))
      .filter((file) => file.endsWith('.sql'))
      .toSorted()
      .map((file) => `${folder}/${file.slice(0, -4)}`),
  )
  return Object.fromEntries(names.map((name) => [name, read(`sql/${name}.sql`)]))
}

/** What a fresh installation looks like, as JSON. */
export function catalogueText(): string {
  return read('sql/catalogue.json')
}

/** Of this package, never of the application's. */
export function packageVersion(): string {
  return (JSON.parse(read('package.json')) as { readonly version: string }).version
}

function read(path: string): string {
  // A checkout may change line ends; they do not count.
  return readFileSync(inPackage(path), 'utf8').replaceAll('\r\n', '\n')
}

function inPackage(path: string): URL {
  return new URL(`../../${path}`, import.meta.url)
}
