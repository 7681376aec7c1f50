import { Misuse } from './failure.ts'

const last = 4_095

/** `7`, `7,9`, `0-63,100`: buckets as they are typed. @throws Misuse */
export function bucketsIn(text: string): readonly number[] {
  return text.split(',').flatMap((part) => {
    const [, first, end = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim()) ?? []
    const [from, to] = [Number(first), Number(end)]
    if (first === undefined || to > last || from > to) {
      throw new Misuse(`--buckets takes numbers from 0 to ${last} and ranges of them: 7,9,100-120.`)
    }
    return Array.from({ length: to - from + 1 }, (_, at) => from + at)
  })
}

/** The same the other way round, shortened. */
export function bucketText(buckets: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const bucket of buckets.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1)
    if (range !== undefined && range[1] === bucket - 1) range[1] = bucket
    else ranges.push([bucket, bucket])
  }
  const most = 6
  const shown = ranges
    .slice(0, most)
    .map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`))
  const more = ranges.length - most
  return more > 0 ? `${shown.join(',')} and ${more} more` : shown.join(',')
}
