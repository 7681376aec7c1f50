/** What a body has written, as far as savepoints are concerned. */
interface Written {
  readonly writes: readonly { readonly by: string; undone: boolean }[]
}

/** Savepoints that the body made by hand, and which of its writes came after them. */
export class Play<A extends Written> {
  readonly attempt: A
  readonly savepoints: { readonly name: string; readonly at: number }[] = []

  constructor(attempt: A) {
    this.attempt = attempt
  }

  rollBackTo(name: string): void {
    const index = this.savepoints.findLastIndex((each) => each.name === name)
    const found = this.savepoints[index]
    if (found === undefined) return
    this.undo(found.at)
    this.savepoints.length = index + 1
  }

  /** What nobody waited for may have come after the savepoint, though it was sent before. */
  undo(from: number): void {
    for (const [index, write] of this.attempt.writes.entries()) {
      if (write.by === 'unawaited' || (index >= from && write.by !== 'root')) write.undone = true
    }
  }

  release(name: string): void {
    const index = this.savepoints.findLastIndex((each) => each.name === name)
    if (index >= 0) this.savepoints.length = index
  }
}
