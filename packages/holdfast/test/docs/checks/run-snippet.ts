/** A program of its own: runs one block and then lets its preamble close what it opened. */
const [snippet, preamble] = process.argv.slice(2) as [string, string | undefined]
await import(snippet)
// A block that stands alone leaves its pool open, as the application that it would be in does.
if (preamble === undefined) process.exit()
const { close } = (await import(preamble)) as { close?: () => Promise<void> }
await close?.()
