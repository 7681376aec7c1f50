import { errorCodes } from '../../../packages/holdfast/src/errors.ts'
import type { SearchIndex } from './index-pages.ts'
import { symptoms } from './symptoms.ts'

/** Every code of an error, and the symptoms: what is not the first or the second hit. */
export function missesOf(index: SearchIndex): string[] {
  const codes = Object.keys(errorCodes).map(
    (code) => [code, `/docs/errors#${code.toLowerCase()}`] as const,
  )
  return [...codes, ...symptoms].flatMap(([query, wanted]) => {
    const hits = index.search(query).map(({ id }) => String(id))
    const isFound = hits.slice(0, 2).some((id) => id === wanted || id.startsWith(`${wanted}#`))
    return isFound ? [] : [`${query}: ${hits.slice(0, 4).join(', ')}`]
  })
}
