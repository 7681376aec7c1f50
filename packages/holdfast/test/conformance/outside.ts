/** The suite on a driver that is not ours: HOLDFAST_HARNESS names the module with its harness. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exerciseDriver } from './exercise-driver.ts'
import type { Harness } from './suite/harness.ts'

interface Outside {
  /** The client's name. */
  readonly name: string
  /** Names of the harness' look-alikes. */
  readonly lookAlikes: readonly string[]
  open(url: string): Promise<Harness<unknown>>
}

const { HOLDFAST_HARNESS: path = '' } = process.env
const { name, open, lookAlikes } = (await import(pathToFileURL(resolve(path)).href)) as Outside
exerciseDriver(name, open, lookAlikes, false)
