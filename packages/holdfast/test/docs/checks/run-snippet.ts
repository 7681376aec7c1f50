/** A program of its own: runs one block and then lets its preamble close what it opened. */
const [snippet, preamble] = process.argv.slice(2) as [string, string]
await import(snippet)
const { close } = (await import(preamble)) as { close?: () => Promise<void> }
await close?.()
