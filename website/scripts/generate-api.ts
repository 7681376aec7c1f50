/** Writes the reference of the API as pages of the site, from the comments in the sources. Run: npm run api */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application, type DeclarationReflection } from 'typedoc'
import { entriesOf, packageRoot, readManifest } from '../../scripts/package/entries.ts'
import { repository } from '../site/repository.ts'

const out = fileURLToPath(new URL('../generated/', import.meta.url))
const entries = (['holdfast', 'race', 'console', 'nestjs'] as const).flatMap((name) => {
  const root = packageRoot(name)
  return entriesOf(readManifest(root)).map(({ specifier, source }) => ({
    specifier,
    file: fileURLToPath(new URL(source, root)),
  }))
})

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  tsconfig: fileURLToPath(new URL('../typedoc.tsconfig.json', import.meta.url)),
  entryPoints: entries.map(({ file }) => file),
  skipErrorChecking: true,
  excludePrivate: true,
  excludeInternal: true,
  // Links lead to the branch and not to the commit, so that they stay right when the site is older than the sources.
  sourceLinkTemplate: `${repository}/blob/main/{path}#L{line}`,
  gitRevision: 'main',
  readme: 'none',
  logLevel: 'Error',
  ...{
    outputFileStrategy: 'modules',
    entryFileName: 'index',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    sanitizeComments: true,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    // Without them the descriptions have room; what is optional has a question mark, and the heading leads to the source.
    tableColumnSettings: {
      hideModifiers: true,
      hideSources: true,
      hideInherited: true,
      leftAlignHeaders: true,
    },
  },
})
const project = await app.convert()
if (project === undefined) throw new Error('typedoc could not read the sources')
project.name = 'API'
for (const module of project.children ?? []) module.name = specifierOf(module)

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
await app.outputs.writeOutput({ name: 'markdown', path: out }, project)
if (app.logger.hasErrors()) process.exitCode = 1
const names = (project.children ?? []).map(({ name }) => name).toSorted()
writeFileSync(
  join(out, 'sidebar.json'),
  JSON.stringify(names.map((name) => ({ text: name, link: `/api/${name}` }))),
)

function specifierOf({ name, sources }: DeclarationReflection): string {
  const file = sources?.[0]?.fullFileName
  const entry = entries.find((known) => known.file === file)
  if (entry === undefined) throw new Error(`${name} is no entry of a package`)
  return entry.specifier
}
