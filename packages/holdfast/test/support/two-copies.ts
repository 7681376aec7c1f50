import pg from 'pg'

/** Run in a folder with two copies of the sources; prints what the second one knows of the first. */
const [first, second] = await Promise.all(
  ['first', 'second'].map(async (copy) => ({
    ...(await import(`./${copy}/index.ts`)),
    ...(await import(`./${copy}/drivers/pg.ts`)),
    ...(await import(`./${copy}/core/open-transactions.ts`)),
    ...(await import(`./${copy}/core/events/tracing.ts`)),
  })),
)

const declared = [first, second].map((copy) => copy.lockNamespace('twice', 'One at a time'))

const pool = new pg.Pool({ host: 'localhost', port: 1 })
const connects = new Set([pool.connect])
first.fromPg(pool)
connects.add(pool.connect)
const before = listeners()
const driver = second.fromPg(pool)
connects.add(pool.connect)

first.traceBy({ run: () => undefined })

process.stdout.write(
  JSON.stringify({
    isAnother: first.lockNamespace !== second.lockNamespace,
    sameNamespace: declared[0] === declared[1],
    listed: second.lockNamespaces().map(({ namespace }: { namespace: string }) => namespace),
    connectWrapped: connects.size - 1,
    listenersAdded: listeners() - before,
    nested: nestedCode(),
    traced: second.isTraced(),
  }),
)

function listeners(): number {
  return ['acquire', 'release', 'remove'].reduce((sum, name) => sum + pool.listenerCount(name), 0)
}

function nestedCode(): unknown {
  try {
    first.openTransactions.run({ driver, outer: undefined, open: true }, () =>
      second.assertNotNested(driver),
    )
    return undefined
  } catch (error) {
    return (error as { readonly code?: unknown }).code
  }
}
