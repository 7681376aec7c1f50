import { holdfastError } from '../../core/errors.ts'

/**
 * Runs the body in a savepoint of the client's own, for clients whose savepoint call takes a
 * callback. The result is carried past the client, which may make something else of it.
 */
export async function inNativeSavepoint<T>(
  open: (callback: (inner: unknown) => Promise<void>) => Promise<unknown>,
  body: (inner: unknown) => Promise<T>,
): Promise<T> {
  let done = undefined as { readonly result: T } | undefined
  await open(async (inner) => {
    done = { result: await body(inner) }
  })
  if (done === undefined) throw holdfastError('DRIVER_HANDLE_INVALID')
  return done.result
}
