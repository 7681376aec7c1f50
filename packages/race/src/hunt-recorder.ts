/** Loaded by `--import` into every process of a command that is recorded, before anything else. */
import { recordProcess } from './command/link.ts'
import { socketVariable } from './command/messages.ts'
import { witness } from './command/witness.ts'

const path = process.env[socketVariable]
if (path !== undefined) {
  witness(path)
  recordProcess(path)
}
