/** How long a process may be silent before somebody else takes over its messages. */
export const leaseMs = 1_000
/** What it takes to deliver a message. */
export const deliveryMs = 150
/** Messages at a time in one process. */
export const concurrency = 5

export function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}
