/** Equal sentences once, with how often they came: a thousand times the same is one finding. */
export function counted(sentences: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const sentence of sentences) counts.set(sentence, (counts.get(sentence) ?? 0) + 1)
  return [...counts].map(([sentence, count]) =>
    count === 1 ? sentence : `${sentence}, ${count} times`,
  )
}
