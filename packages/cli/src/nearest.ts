/** The word that was probably meant, if one is near enough. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const limit = typed.length < 4 ? 1 : 2
  const rated = words
    .map((word) => ({ word, far: distance(typed, word) }))
    .filter(({ word, far }) => far <= limit || (typed.length > 2 && word.startsWith(typed)))
  return rated.toSorted((a, b) => a.far - b.far)[0]?.word
}

/** How many letters have to be added, left out, changed or swapped with the next. */
function distance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const same = from[i - 1] === to[j - 1]
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      row[j] = Math.min(
        at(rows, i - 1, j) + 1,
        (row[j - 1] as number) + 1,
        at(rows, i - 1, j - 1) + (same ? 0 : 1),
        swapped ? at(rows, i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    rows.push(row)
  }
  return at(rows, from.length, to.length)
}

function at(rows: readonly number[][], row: number, column: number): number {
  return rows[row]?.[column] as number
}
