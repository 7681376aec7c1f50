/** U13: what a release is refused for, and the links of the page that a registry shows. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { absoluteLinks } from '../../../../scripts/package/absolute-links.ts'
import { packageRoot, packages } from '../../../../scripts/package/entries.ts'
import {
  type Release,
  type ReleaseManifest,
  releaseProblems,
} from '../../../../scripts/package/release-problems.ts'

const manifests = packages.map(
  (name) =>
    JSON.parse(readFileSync(new URL('package.json', packageRoot(name)), 'utf8')) as ReleaseManifest,
)
const version = manifests[0]?.version ?? ''

/** What the checklist of CONTRIBUTING.md leaves behind. */
const filled = JSON.parse(
  JSON.stringify(manifests).replaceAll('OWNER/REPOSITORY', 'somebody/holdfast'),
) as ReleaseManifest[]
const release: Release = {
  tag: `v${version}`,
  manifests: filled,
  changelog: `## [${version}]`,
  repository: 'somebody/holdfast',
}

describe('U13: a release', () => {
  test('goes out if everything agrees', () => {
    expect(releaseProblems(release)).toEqual([])
  })

  test('is refused as long as an address is the placeholder', () => {
    const [library, ...others] = manifests
    for (const { name, homepage, repository, bugs } of manifests) {
      expect([name, homepage, repository?.url, bugs?.url]).not.toContain(undefined)
    }
    const problems = releaseProblems({ ...release, manifests: [library, ...others] as never })
    const stillThere = problems.filter((problem) => problem.endsWith('is still the placeholder'))
    const isFilled = !JSON.stringify(manifests).includes('OWNER/REPOSITORY')
    expect(stillThere).toHaveLength(isFilled ? 0 : 3 * packages.length)
    const one = { ...filled[0], homepage: 'https://github.com/OWNER/REPOSITORY#readme' }
    expect(
      releaseProblems({ ...release, manifests: [one as ReleaseManifest, ...filled.slice(1)] }),
    ).toEqual(['holdfast: homepage is still the placeholder'])
  })

  test.each<[string, Partial<Release>, RegExp]>([
    ['another tag', { tag: 'v0.0.1' }, /the tag is v0\.0\.1/],
    ['no entry in the changelog', { changelog: '' }, /no entry/],
    ['another repository', { repository: 'else/where' }, /this is else\/where/],
    [
      'an address that is missing',
      { manifests: [{ name: 'holdfast', version }] },
      /has no repository\.url/,
    ],
    [
      'a version left behind',
      { manifests: [...filled, { ...(filled[1] as ReleaseManifest), version: '0.0.9' }] },
      /its version is 0\.0\.9/,
    ],
    [
      'a dependency left behind',
      {
        manifests: [
          ...filled,
          { ...(filled[1] as ReleaseManifest), dependencies: { holdfast: '0.0.9' } },
        ],
      },
      /wants holdfast 0\.0\.9/,
    ],
  ])('is refused for %s', (_, change, problem) => {
    expect(releaseProblems({ ...release, ...change }).join('\n')).toMatch(problem)
  })
})

test('U13: links of the README lead to the repository, at the tag', () => {
  const page = '[a](docs/a.md#b) ![c](docs/c.png) [d](#e) [f](https://example.org/) [g](LICENSE)'
  const { repository } = filled[0] as ReleaseManifest
  const at = 'https://github.com/somebody/holdfast'
  expect(absoluteLinks(page, { repository, version: '1.2.3' } as never)).toBe(
    `[a](${at}/blob/v1.2.3/docs/a.md#b) ![c](${at}/raw/v1.2.3/docs/c.png) [d](#e) [f](https://example.org/) [g](${at}/blob/v1.2.3/LICENSE)`,
  )
})

test('links between pages that are copied stay, and others lead to the repository', () => {
  const repository = { url: 'git+https://example.org/one/two.git' }
  const page = '[a](rows.md#b) [b](#c) [c](../README.md) ![d](observe/now.png) [e](race/hunt.md)'
  const copied = { page: 'docs/locks.md', isCopied: (path: string) => path === 'docs/rows.md' }
  expect(absoluteLinks(page, { repository, version: '1.2.3' }, copied)).toBe(
    [
      '[a](rows.md#b) [b](#c) [c](https://example.org/one/two/blob/v1.2.3/README.md)',
      '![d](https://example.org/one/two/raw/v1.2.3/docs/observe/now.png)',
      '[e](https://example.org/one/two/blob/v1.2.3/docs/race/hunt.md)',
    ].join(' '),
  )
})
