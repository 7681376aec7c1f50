/** A promise that someone else settles: "the body has reached this line", "now go on". */
export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T | PromiseLike<T>): void
  reject(reason: unknown): void
}

export function deferred<T = void>(): Deferred<T> {
  return Promise.withResolvers<T>()
}
