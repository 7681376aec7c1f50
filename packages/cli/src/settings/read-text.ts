import { readFileSync } from 'node:fs'

/** The text of a file, without the mark that editors of Windows put first, and that no parser takes for nothing. */
export function readText(file: string): string {
  return readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
}
