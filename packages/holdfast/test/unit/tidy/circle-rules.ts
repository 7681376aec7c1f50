import { posix } from 'node:path'
import { importsOf, type SourceTree } from './source-tree.ts'

/**
 * Files that import each other, directly or not: neither can be read, moved or tested without the other. Imports of
 * types count as well: Node does not see them, but whoever reads does. Each circle is named once, by the shortest way
 * around.
 */
export function checkCircles(sources: SourceTree): string[] {
  const targets = new Map(
    [...sources].map(([path, file]) => [path, targetsOf(path, file, sources)]),
  )
  const named = new Set<string>()
  const findings: string[] = []
  for (const path of [...sources.keys()].toSorted()) {
    if (named.has(path)) continue
    const way = wayBack(path, targets)
    if (way === undefined) continue
    for (const each of way) named.add(each)
    findings.push(`${path}:1 is in a circle of imports: ${[...way, path].join(' → ')}`)
  }
  return findings
}

function targetsOf(
  path: string,
  file: Parameters<typeof importsOf>[0],
  sources: SourceTree,
): readonly string[] {
  const found = importsOf(file)
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier }) => posix.join(posix.dirname(path), specifier))
  return [...new Set(found)].filter((target) => sources.has(target))
}

/** The files of the shortest circle through one, beginning with it. */
function wayBack(
  path: string,
  targets: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  const ways: (readonly string[])[] = [[path]]
  const seen = new Set<string>()
  for (const way of ways) {
    for (const next of targets.get(way.at(-1) ?? '') ?? []) {
      if (next === path) return way
      if (!seen.has(next)) ways.push([...way, next])
      seen.add(next)
    }
  }
  return undefined
}
