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

/**
 * The first answer of two statements that were sent together. If it fails, that is told when the other has ended as
 * well: a body that goes on, or returns, must not find a statement of ours under way.
 */
export async function firstOf<T>(
  first: Promise<T>,
  second: Promise<unknown> | undefined,
): Promise<T> {
  second?.catch(() => undefined)
  try {
    return await first
  } catch (error) {
    await second?.catch(() => undefined)
    throw error
  }
}

/** Whether it is settled, whichever way, within so many milliseconds. Never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = promise.then(isSettled, isSettled)
  return (await within(settled, ms)) === true
}

function isSettled(): boolean {
  return true
}
