/** Whether one version is later than another, by its numbers; what follows a dash does not count. */
export function isNewer(version: string, than: string): boolean {
  const [left, right] = [numbers(version), numbers(than)]
  for (let at = 0; at < 3; at += 1) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}

function numbers(version: string): number[] {
  return (version.split(/[-+]/)[0] as string).split('.').map(Number)
}
