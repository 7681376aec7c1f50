/**
 * The five articles, each as it is first written and as it is mended:
 * `quota` reads a counter, checks it and adds one; `upload` sums bytes, checks and inserts;
 * `stock` reads a stock, subtracts in the application and writes it back; `webhook` looks whether an
 * event was handled and inserts it; `job` takes the first job that nobody has.
 */
export type ArticleName = 'quota' | 'upload' | 'stock' | 'webhook' | 'job'

export type Version = 'naive' | 'fixed'

export interface OpenClient extends AsyncDisposable {
  /** Does what one request of the article does; `who` is who asks. */
  readonly run: Readonly<Record<ArticleName, (version: Version, who: string) => Promise<string>>>
}

export const limit = 100
export const cap = 100
export const incomingBytes = 30
export const event = 'event-1'

/** Key of the advisory lock for one user, as the articles make it. */
export const lockUser = `SELECT pg_advisory_xact_lock(hashtext('ann'))`
