import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/**
 * So many percent of the lines of a file, as places for Stryker. By the text of each line and not by chance, so that
 * two runs change the same ones, and a line that moves stays in or out. What goes over several lines is not among them.
 */
export function someLines(file: string, percent: number): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((text, at) => {
      const chance = Number.parseInt(hash('sha256', `${file} ${text.trim()}`).slice(0, 8), 16)
      return chance < (percent / 100) * 2 ** 32 ? [`${file}:${at + 1}-${at + 1}`] : []
    })
}
