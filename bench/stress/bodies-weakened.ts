/** `node --import` this to run the library with one protection taken out of its source, named by BODIES_WITHOUT. */
import { cutSources } from '../harness/cut-sources.ts'
import { cuts, isControlName } from './bodies-cuts.ts'

const without = process.env['BODIES_WITHOUT'] ?? ''
if (!isControlName(without)) throw new Error(`there is no control "${without}"`)
cutSources(cuts[without])
