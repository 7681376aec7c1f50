/** How long a worker may be silent before somebody else takes over its jobs. */
export const leaseMs = 500
/** What the slow part of each task takes. */
export const slowMs = 50
/** Pictures that one user may keep. */
export const picturesAllowed = 5

export function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}
