import { isInnodb } from '../engines/engine.ts'

/** Work that is done once, in words that are the same for all products. */
export interface OnceStore<Tx> extends AsyncDisposable {
  /** Makes the tables; for the control without what makes a key unique. */
  prepare(weakened: boolean): Promise<void>
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  once(webhook: string, body: (tx: Tx) => Promise<string>): Promise<string>
  onceIn(tx: Tx, webhook: string, body: (tx: Tx) => Promise<string>): Promise<string>
  effect(tx: Tx, webhook: string, id: string): Promise<void>
  effectsOf(webhook: string): Promise<readonly string[]>
}

/** Opens so many connections. The URL says of which product it is. */
export async function openOnceStore(
  url: string,
  size: number,
  weakened: boolean,
): Promise<OnceStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./once-innodb.ts')).innodbOnceStore(url, size, weakened)
    : await (await import('./once-postgres.ts')).postgresOnceStore(url, size)
  return opened as OnceStore<unknown>
}
