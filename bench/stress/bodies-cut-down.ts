/** Some findings take seconds each time. */
export interface CutDownLimits {
  readonly runs: number
  readonly ms: number
}

/**
 * Cuts a body down to the shortest that still makes a lie of the same sort: whatever can be left out is, and what is left
 * is made plainer. A lie that depends on timing is given a second chance.
 */
export async function cutDown<B, L extends { readonly sort: string }>(
  body: B,
  first: L,
  {
    candidates,
    attempt,
  }: { candidates(body: B): Iterable<B>; attempt(body: B): Promise<L | undefined> },
  most: CutDownLimits,
): Promise<{ readonly body: B; readonly lie: L }> {
  let best = { body, lie: first }
  let runs = 0
  const until = performance.now() + most.ms
  const stillLies = async (candidate: B): Promise<boolean> => {
    for (let chance = 0; chance < 2; chance += 1) {
      if (runs >= most.runs || performance.now() > until) return false
      runs += 1
      const lie = await attempt(candidate)
      if (lie?.sort !== first.sort) continue
      best = { body: candidate, lie }
      return true
    }
    return false
  }
  for (let isShorter = true; isShorter; ) {
    isShorter = false
    for (const candidate of candidates(best.body)) {
      if (!(await stillLies(candidate))) continue
      isShorter = true
      break
    }
  }
  return best
}
