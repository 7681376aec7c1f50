/** Names the step that took too long: a run of a thousand episodes must not end in a silent wait. */
export async function within<T>(what: string, limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms`)), limitMs)
  })
  try {
    return await Promise.race([work, late])
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
