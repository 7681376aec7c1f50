import { setTimeout as pause } from 'node:timers/promises'

const limitMs = 120_000
const everyMs = 20

/** Asks again and again until it is so. */
export async function waitUntil(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms in vain until ${what}`)
    await pause(everyMs)
  }
}
