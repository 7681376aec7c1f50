import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Block, root } from './pages.ts'

/** A block that names a region must be that region, letter by letter. */
export function checkRegions(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => {
    const source = block.notes.get('region')
    if (source === undefined) return []
    const region = readRegion(source)
    if (region === undefined) return [`${block.page}:${block.line} ${source}: no such region`]
    return region === block.code ? [] : [`${block.page}:${block.line} is not ${source}`]
  })
}

/** The lines between `// #region name` and `// #endregion` of `path#name`, without their indent; in SQL after `--`. */
export function readRegion(source: string): string | undefined {
  const [path = '', name = ''] = source.split('#')
  const file = join(root, path)
  if (!existsSync(file)) return undefined
  const lines = readFileSync(file, 'utf8').split('\n')
  const mark = path.endsWith('.sql') ? '--' : '//'
  const start = lines.findIndex((line) => line.trim() === `${mark} #region ${name}`)
  const end = lines.findIndex((line, at) => at > start && line.trim() === `${mark} #endregion`)
  if (start === -1 || end === -1) return undefined
  const indent = (lines[start] as string).search(/\S/)
  return lines
    .slice(start + 1, end)
    .map((line) => line.slice(indent))
    .join('\n')
}
