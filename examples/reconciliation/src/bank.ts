import { setTimeout as pause } from 'node:timers/promises'

const usualMs = 20
const monthEndMs = 1_400

/** Every third night stands for the end of a month. */
export function isMonthEnd(night: Date, nightMs: number): boolean {
  return Math.round(night.getTime() / nightMs) % 3 === 0
}

/** Stands for the bank's statement of a night, which takes its time at the end of a month. */
export async function fetchStatement(night: Date, nightMs: number): Promise<{ lines: number }> {
  await pause(isMonthEnd(night, nightMs) ? monthEndMs : usualMs)
  return { lines: 20 }
}
