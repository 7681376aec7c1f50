/**
 * The answer if it comes in time, `undefined` if it is late or fails: for what is good to know and
 * must not hold up something more important.
 */
export async function within<T>(answer: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([answer.catch(() => undefined), limit])
  } finally {
    clearTimeout(timer)
  }
}
