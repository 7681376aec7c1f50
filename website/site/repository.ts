import { packageRoot, readManifest } from '../../scripts/package/entries.ts'

/** Where the sources are, as the package says it: its placeholder is replaced before the first release. */
export const repository: string = addressOf(readManifest(packageRoot('holdfast')))

function addressOf(manifest: object): string {
  const { repository: field } = manifest as { readonly repository?: { readonly url?: string } }
  return (field?.url ?? '').replace(/^git\+/, '').replace(/\.git$/, '')
}
