/**
 * Sentences of more than thirty words that stay, by the page or the error that has them: how they begin, and why. A list
 * that cannot be told shorter is a reason; a thought that can be told in two sentences is none.
 */
export const longSentences: Readonly<Record<string, readonly string[]>> = {}

/** Pages that are not plain yet. Nothing is added: a page is taken out once it is plain, and a new page is plain. */
export const notYetPlain: readonly string[] = [
  'docs/observe.md',
  'docs/once.md',
  'docs/peers.md',
  'docs/poolers.md',
  'docs/proof.md',
  'docs/quota.md',
  'docs/race/acidrain.md',
  'docs/race/five-minutes.md',
  'docs/race/how-it-works.md',
  'docs/race/hunt.md',
  'docs/race/limits.md',
  'docs/race/options.md',
  'docs/race/reading-a-report.md',
  'docs/race/real-bugs.md',
  'docs/race/recipes.md',
  'docs/rows.md',
  'docs/runtimes.md',
  'docs/schedules.md',
  'docs/schema.md',
  'docs/security.md',
  'docs/shards.md',
  'docs/sqlite.md',
  'docs/stock.md',
  'docs/transactions.md',
  'docs/waiting.md',
  'docs/which-one.md',
  'docs/who-blocks-whom.md',
]
