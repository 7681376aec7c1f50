/** Refuses a release that would be wrong, with every reason. Run: node scripts/check-release.ts v1.2.3 */
import { readFileSync } from 'node:fs'
import { packageRoot, packages } from './package/entries.ts'
import { type ReleaseManifest, releaseProblems } from './package/release-problems.ts'

const [tag = ''] = process.argv.slice(2)
const problems = releaseProblems({
  tag,
  manifests: packages.map(
    (name) =>
      JSON.parse(
        readFileSync(new URL('package.json', packageRoot(name)), 'utf8'),
      ) as ReleaseManifest,
  ),
  changelog: readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8'),
  // Where the workflow runs; provenance is refused for any other.
  repository: process.env['GITHUB_REPOSITORY'],
})
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
