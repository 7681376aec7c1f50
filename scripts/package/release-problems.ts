/** What a release needs to know of a package.json. */
export interface ReleaseManifest {
  readonly name: string
  readonly version: string
  readonly homepage?: string
  readonly repository?: { readonly url: string; readonly directory?: string }
  readonly bugs?: { readonly url: string }
  readonly dependencies?: Readonly<Record<string, string>>
}

export interface Release {
  /** `v1.2.3` */
  readonly tag: string
  readonly manifests: readonly ReleaseManifest[]
  readonly changelog: string
  /** `owner/name`, where it is known. */
  readonly repository: string | undefined
}

/** Stands in every package.json until the first release is prepared. */
const placeholder = 'OWNER/REPOSITORY'

/** Everything that is wrong with a release; nothing if it may go out. */
export function releaseProblems({ tag, manifests, changelog, repository }: Release): string[] {
  const [first] = manifests
  const version = first?.version ?? ''
  const names = new Set(manifests.map(({ name }) => name))
  return [
    ...(tag === `v${version}` ? [] : [`the tag is ${tag}, and package.json says ${version}`]),
    ...(changelog.includes(`## [${version}]`) ? [] : [`CHANGELOG.md has no entry for ${version}`]),
    ...manifests.flatMap((manifest) => [
      ...versionProblems(manifest, version, names),
      ...addressProblems(manifest, repository),
    ]),
  ]
}

function versionProblems(
  { name, version, dependencies = {} }: ReleaseManifest,
  released: string,
  ours: ReadonlySet<string>,
): string[] {
  return [
    ...(version === released ? [] : [`${name}: its version is ${version}, not ${released}`]),
    ...Object.entries(dependencies)
      .filter(([dependency, wanted]) => ours.has(dependency) && wanted !== released)
      .map(([dependency, wanted]) => `${name}: wants ${dependency} ${wanted}, not ${released}`),
  ]
}

function addressProblems(
  { name, homepage, repository, bugs }: ReleaseManifest,
  here: string | undefined,
): string[] {
  const fields = { homepage, 'repository.url': repository?.url, 'bugs.url': bugs?.url }
  return Object.entries(fields).flatMap(([field, address]) => {
    if (address === undefined) return [`${name}: has no ${field}`]
    if (address.includes(placeholder)) return [`${name}: ${field} is still the placeholder`]
    if (here !== undefined && field === 'repository.url' && !address.includes(`/${here}.git`)) {
      return [`${name}: ${field} is ${address}, and this is ${here}`]
    }
    return []
  })
}
