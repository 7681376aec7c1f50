/**
 * Waits for work that is under way; once `stop` was aborted, for no longer than `leaveMs`: then it
 * rejects with what `reason` gives, and nobody hears how the work ends.
 */
export async function untilLeft(
  working: Promise<void>,
  { stop, leaveMs }: { readonly stop: AbortSignal | undefined; readonly leaveMs: number },
  reason: () => Error,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const { promise: left, reject } = Promise.withResolvers<never>()
  const leave = (): void => {
    timer = setTimeout(() => reject(reason()), leaveMs)
  }
  if (stop?.aborted === true) leave()
  else stop?.addEventListener('abort', leave, { once: true })
  try {
    await Promise.race([working, left])
  } finally {
    clearTimeout(timer)
    stop?.removeEventListener('abort', leave)
  }
}
