/** A program that takes the screen over and then fails, as none of ours should. */
import { openScreen } from '../../src/terminal/full-screen.ts'

const screen = openScreen(
  process.stdin,
  process.stdout,
  () => undefined,
  () => undefined,
)
screen.draw(['drawn'])
setTimeout(() => {
  throw new Error('unforeseen')
}, 100)
